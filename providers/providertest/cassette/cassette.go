// Package cassette records what model servers answer, and plays it again in tests. It is
// apart from package providertest so that programs which link that do not link a recorder.
package cassette

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	vcr "gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
	"gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"

	"github.com/reprise-dev/reprise/providers/internal/wire"
)

// RecordVariable is the environment variable that, if it is not empty, makes [Client] ask
// servers and write what they answer.
const RecordVariable = "REPRISE_RECORD"

// hidden stands in a cassette for an id of an account, and for the values of a query.
const hidden = "HIDDEN"

// keptHeaders are the headers of answers that a cassette has.
var keptHeaders = []string{"Content-Type", "Retry-After", "Retry-After-Ms"}

// accounts are ids of accounts and keys, as vendors write them. A match without a digit and
// without letters of both cases is a word, such as the name of a tool.
var accounts = regexp.MustCompile(`\b(?:(?:org|proj|user|acct|account)[-_][A-Za-z0-9]{12,}|(?:sk|gsk|xai|key|hf)[-_][A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{16,})`)

// Client returns a client, for openai.HTTPClient, that answers requests with the exchanges of
// a YAML file, in the order in which they were recorded and without a network. With
// [RecordVariable] set it asks the real servers instead and writes the file when t ends.
//
// A request is answered by an exchange with the same method, path and body, as JSON; one that
// has none fails t. Answers come in one piece, streams too.
//
// The file has no header but the kind of an answer and how long to wait, no host, and of a
// query only its names. In paths and bodies are replaced, also where JSON escapes them: the texts secrets; of
// requests the values of 12 bytes or more that headers and query parameters have whose names speak of a
// key, token, secret, cookie or authorization; and ids of the form org-, proj_, user- or acct_ with
// 12 letters and digits, or sk-, gsk_, xai-, key_, hf_ or AIza with 16, that have a digit or letters of
// both cases. Ids of accounts in other forms, such as numbers and UUIDs, are to be among secrets.
func Client(t testing.TB, file string, secrets ...string) *http.Client {
	t.Helper()
	mode := recorder.ModeReplayOnly
	if os.Getenv(RecordVariable) != "" {
		mode = recorder.ModeRecordOnly
	}
	rec, err := recorder.New(strings.TrimSuffix(file, filepath.Ext(file)),
		recorder.WithMode(mode), recorder.WithSkipRequestLatency(true), recorder.WithMatcher(same(secrets)),
		recorder.WithHook(func(i *vcr.Interaction) error {
			scrubExchange(i, secrets)
			return nil
		}, recorder.BeforeSaveHook))
	if err != nil {
		t.Fatalf("%v: record it with %s=1", err, RecordVariable)
	}
	t.Cleanup(func() {
		if err := rec.Stop(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	})
	return &http.Client{Transport: player{t, file, rec}}
}

// player reports requests that no exchange answers.
type player struct {
	t    testing.TB
	file string
	http.RoundTripper
}

// RoundTrip answers a request.
func (p player) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.RoundTripper.RoundTrip(r)
	if errors.Is(err, vcr.ErrInteractionNotFound) {
		p.t.Errorf("%s has no exchange left for %s %s: if the request is meant to differ, record it again with %s=1", p.file, r.Method, r.URL.Path, RecordVariable)
	}
	return resp, err
}

// same returns a function that reports whether a request is a recorded one.
func same(secrets []string) recorder.MatcherFunc {
	return func(r *http.Request, recorded vcr.Request) bool {
		body, err := bodyOf(r)
		at, parseErr := url.Parse(recorded.URL)
		s := scrubberOf(r.Header, r.URL, secrets)
		return errors.Join(err, parseErr) == nil && r.Method == recorded.Method && scrubText(r.URL.Path, s) == at.Path &&
			sameJSON(scrubText(body, s), recorded.Body)
	}
}

func bodyOf(r *http.Request) (string, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return "", nil
	}
	if r.GetBody == nil {
		return "", errors.New("a body that can be read once cannot be compared")
	}
	body, err := r.GetBody()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(body)
	return string(b), err
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return reflect.DeepEqual(x, y)
}

// scrubberOf hides the secrets of a request, and those of the test.
func scrubberOf(h http.Header, u *url.URL, secrets []string) wire.Scrubber {
	return wire.NewScrubber(append(wire.Secrets(h, u.Query()), secrets...)...)
}

// scrubText returns a body, JSON or a stream of it, without secrets and ids of accounts.
func scrubText(text string, s wire.Scrubber) string {
	lines := strings.SplitAfter(text, "\n")
	if json.Valid([]byte(text)) {
		lines = []string{string(s.JSON([]byte(text)))}
	}
	for i, line := range lines {
		if data, ok := strings.CutPrefix(line, "data:"); ok && json.Valid([]byte(data)) {
			lines[i] = "data:" + string(s.JSON([]byte(data)))
		}
	}
	return accounts.ReplaceAllStringFunc(s.Text(strings.Join(lines, "")), func(id string) string {
		if !strings.ContainsAny(id, "0123456789") && (id == strings.ToLower(id) || id == strings.ToUpper(id)) {
			return id
		}
		return hidden
	})
}

// scrubExchange leaves of an exchange what a cassette may have.
func scrubExchange(i *vcr.Interaction, secrets []string) {
	at, err := url.Parse(i.Request.URL)
	if err != nil {
		at = &url.URL{}
	}
	s := scrubberOf(i.Request.Headers, at, secrets)
	query := at.Query()
	for name := range query {
		query.Set(name, hidden)
	}
	i.Request = vcr.Request{
		Proto: i.Request.Proto, ProtoMajor: i.Request.ProtoMajor, ProtoMinor: i.Request.ProtoMinor, Method: i.Request.Method,
		URL:  (&url.URL{Scheme: "http", Host: "server", Path: scrubText(at.Path, s), RawQuery: query.Encode()}).String(),
		Body: scrubText(i.Request.Body, s),
	}
	headers := http.Header{}
	for _, name := range keptHeaders {
		if v := i.Response.Headers.Get(name); v != "" {
			headers.Set(name, v)
		}
	}
	i.Response.Headers, i.Response.Trailer, i.Response.Duration = headers, nil, 0
	i.Response.Body = scrubText(i.Response.Body, s)
	i.Response.ContentLength = int64(len(i.Response.Body))
}
