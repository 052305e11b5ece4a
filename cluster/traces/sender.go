package traces

import (
	"bytes"
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
	"google.golang.org/protobuf/proto"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Sender sends spans to a collector. Safe for concurrent use.
type Sender struct {
	Resource Resource

	url     *url.URL
	headers http.Header
	client  *http.Client
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
	s := &Sender{Resource: of, url: u, client: &http.Client{Timeout: attemptFor}, headers: http.Header{}}
	for name, value := range headers {
		s.headers.Set(name, value)
	}
	s.headers.Set("Content-Type", "application/x-protobuf")
	s.headers.Set("Content-Encoding", "gzip")
	return s, nil
}

// Send sends spans that have ended, and tries again for as long as the collector is not there or
// overloaded, until ctx ends. An error names the collector.
func (s *Sender) Send(ctx context.Context, spans []projections.Span) error {
	body, err := packed(s.Resource, spans)
	if err != nil {
		return err
	}
	var last error // of the collector, where the wait for another attempt ends with that of ctx
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		last = s.post(ctx, body)
		return struct{}{}, last
	}, backoff.WithMaxElapsedTime(0))
	if err != nil {
		return fmt.Errorf("send spans to %s: %w", s.url.Redacted(), last)
	}
	return nil
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

// post makes one request. An error that another attempt cannot change is permanent.
func (s *Sender) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	r.Header = maps.Clone(s.headers)
	resp, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			return backoff.RetryAfter(seconds)
		}
		return fmt.Errorf("HTTP %s", resp.Status)
	}
	return backoff.Permanent(fmt.Errorf("HTTP %s: %s", resp.Status, messages.OneLine(string(said))))
}
