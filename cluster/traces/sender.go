package traces

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Sender sends spans to a collector. Safe for concurrent use.
type Sender struct {
	resource Resource
	url      *url.URL
	headers  http.Header
	client   *http.Client
}

// attemptFor is how long a collector may take for one request.
const attemptFor = 10 * time.Second

// tracesPath is where a collector takes traces, below its base address.
const tracesPath = "/v1/traces"

// NewSender returns a Sender to the collector at a base address, such as http://localhost:4318; one
// that ends in /v1/traces is taken as it is. headers are part of every request.
func NewSender(address string, headers map[string]string, of Resource) (*Sender, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("that is no address of a collector: write the base address at which it takes OTLP over HTTP, such as http://localhost:4318")
	}
	if !strings.HasSuffix(u.Path, tracesPath) {
		u = u.JoinPath(tracesPath)
	}
	s := &Sender{resource: of, url: u, client: &http.Client{Timeout: attemptFor, CheckRedirect: noRedirect}, headers: http.Header{}}
	for name, value := range headers {
		s.headers.Set(name, value)
	}
	s.headers.Set("Content-Type", "application/x-protobuf")
	s.headers.Set("Content-Encoding", "gzip")
	return s, nil
}

// noRedirect makes a redirection the answer to a request. Followed, a POST may become a GET, whose
// answer does not say that spans were taken, and the headers go to another host.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Send sends spans that have ended, in several requests if they are large, and tries again for as long
// as the collector is not there or overloaded, until ctx ends. What can be sent is, also if a part of
// it cannot. It returns how many spans the collector did not take, and why it did not take the first of
// these. The error names the collector.
func (s *Sender) Send(ctx context.Context, spans []projections.Span) (lost int, why error) {
	for len(spans) > 0 {
		n := fitting(spans)
		lostNow, err := s.send(ctx, spans[:n])
		lost, why, spans = lost+lostNow, cmp.Or(why, err), spans[n:]
	}
	return lost, why
}

// maxTexts is how many bytes of texts a request should have at most, which is a part of what
// collectors take. A single span may have more.
const maxTexts = 4 << 20

// fitting returns how many of the spans are sent in one request: one or more.
func fitting(spans []projections.Span) int {
	size := 0
	for i := range spans {
		if size += textsOf(&spans[i]); size > maxTexts {
			return max(i, 1)
		}
	}
	return len(spans)
}

// textsOf returns about how many bytes a span has in a request.
func textsOf(s *projections.Span) int {
	const ids = 200 // with times and the names of attributes
	size := ids*(1+len(s.Events)+len(s.Links)) + len(s.Message)
	for _, a := range s.Attributes {
		size += len(a.Key) + len(a.Text)
	}
	return size
}

// send sends spans in one request, and returns how many of them the collector did not take.
func (s *Sender) send(ctx context.Context, spans []projections.Span) (lost int, err error) {
	body, err := packed(s.resource, spans)
	if err != nil {
		return len(spans), err
	}
	var last error // of the collector, where the wait for another attempt ends with that of ctx
	answer, err := backoff.Retry(ctx, func() (answer *collector.ExportTraceServiceResponse, _ error) {
		answer, last = s.post(ctx, body)
		return answer, last
	}, backoff.WithMaxElapsedTime(0))
	if err != nil {
		return len(spans), fmt.Errorf("send spans to %s: %w", s.url.Redacted(), last)
	}
	part := answer.GetPartialSuccess()
	if lost = int(min(max(part.GetRejectedSpans(), 0), int64(len(spans)))); lost > 0 {
		err = fmt.Errorf("send spans to %s: it rejected %d of %d: %s", s.url.Redacted(), lost, len(spans), messages.OneLine(part.GetErrorMessage()))
	}
	return lost, err
}

// packed returns the body of a request: a TracesData has the bytes of an ExportTraceServiceRequest.
func packed(of Resource, spans []projections.Span) ([]byte, error) {
	b, err := proto.Marshal(of.Data(spans))
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, err = z.Write(b)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// maxAnswer is how many bytes of an answer are read, maxReason how many of them an error has.
const maxAnswer, maxReason = 64 << 10, 200

// post makes one request. An error that another attempt cannot change is permanent.
func (s *Sender) post(ctx context.Context, body []byte) (*collector.ExportTraceServiceResponse, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	r.Header = maps.Clone(s.headers)
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		answer := new(collector.ExportTraceServiceResponse)
		if proto.Unmarshal(said, answer) != nil { // the spans are taken, whatever was said
			return nil, nil
		}
		return answer, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		refused := fmt.Errorf("HTTP %s", resp.Status)
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 { // 0 would be tried without a pause
			return nil, fmt.Errorf("%w: %w", refused, backoff.RetryAfter(seconds))
		}
		return nil, refused
	}
	return nil, backoff.Permanent(fmt.Errorf("HTTP %s: %s", resp.Status, messages.OneLine(string(said[:min(len(said), maxReason)]))))
}
