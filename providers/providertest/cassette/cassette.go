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
)

// RecordVariable is the environment variable that, if it is not empty, makes [Client] ask
// servers and write what they answer.
const RecordVariable = "REPRISE_RECORD"

// hidden stands in a cassette for what is secret.
const hidden = "HIDDEN"

// keptHeaders are the headers of answers that a cassette has.
var keptHeaders = []string{"Content-Type", "Retry-After", "Retry-After-Ms"}

// accounts are ids of accounts and keys, as vendors write them.
var accounts = regexp.MustCompile(`\b(?:(?:org|proj|user|acct|account)[-_][A-Za-z0-9]{6,}|(?:sk|gsk|xai|key|hf)[-_][A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{16,})`)

// Client returns a client, for openai.HTTPClient, that answers requests with the exchanges of
// a YAML file, in the order in which they were recorded and without a network. With
// [RecordVariable] set it asks the real servers instead and writes the file when t ends.
//
// A request is answered by an exchange with the same method, path and body, as JSON; one that
// has none fails t. Answers come in one piece, streams too.
//
// The file has no header but the kind of an answer and how long to wait, no host, and of a
// query only its names. Keys that requests carry in headers or the query, ids of accounts as
// vendors write them, and the texts secrets are replaced wherever they are.
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
		body, err := r.GetBody()
		if err != nil {
			return false
		}
		b, err := io.ReadAll(body)
		at, parseErr := url.Parse(recorded.URL)
		return errors.Join(err, parseErr) == nil && r.Method == recorded.Method && r.URL.Path == at.Path &&
			sameJSON(scrubText(string(b), append(keysOf(r.Header, r.URL), secrets...)), recorded.Body)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return reflect.DeepEqual(x, y)
}

// keysOf returns the texts of a request that may be secret.
func keysOf(h http.Header, u *url.URL) (keys []string) {
	for _, values := range h {
		for _, v := range values {
			keys = append(keys, v, strings.TrimPrefix(v, "Bearer "))
		}
	}
	for _, values := range u.Query() {
		keys = append(keys, values...)
	}
	return keys
}

// shortest is the length from which a header's or a query's value is secret: shorter ones are
// words.
const shortest = 12

func scrubText(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= shortest {
			text = strings.ReplaceAll(text, s, hidden)
		}
	}
	return accounts.ReplaceAllString(text, hidden)
}

// scrubExchange leaves of an exchange what a cassette may have.
func scrubExchange(i *vcr.Interaction, secrets []string) {
	at, err := url.Parse(i.Request.URL)
	if err != nil {
		at = &url.URL{}
	}
	secrets = append(keysOf(i.Request.Headers, at), secrets...)
	query := at.Query()
	for name := range query {
		query.Set(name, hidden)
	}
	i.Request = vcr.Request{
		Proto: i.Request.Proto, ProtoMajor: i.Request.ProtoMajor, ProtoMinor: i.Request.ProtoMinor, Method: i.Request.Method,
		URL: scrubText((&url.URL{Scheme: "http", Host: "server", Path: at.Path, RawQuery: query.Encode()}).String(), secrets), Body: scrubText(i.Request.Body, secrets),
	}
	headers := http.Header{}
	for _, name := range keptHeaders {
		if v := i.Response.Headers.Get(name); v != "" {
			headers.Set(name, v)
		}
	}
	i.Response.Headers, i.Response.Trailer, i.Response.Duration = headers, nil, 0
	i.Response.Body = scrubText(i.Response.Body, secrets)
	i.Response.ContentLength = int64(len(i.Response.Body))
}
