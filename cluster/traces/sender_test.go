package traces_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/reprise-dev/reprise/cluster/traces"
	"github.com/reprise-dev/reprise/projections"
)

// TestSend holds that a collector gets each span that has ended, whole, after it was overloaded.
func TestSend(t *testing.T) {
	c := newCollector(t, http.StatusServiceUnavailable)
	s, err := traces.NewSender(c.URL+"/base", map[string]string{"api-key": "hush"}, traces.Resource{Version: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	if lost, err := s.Send(t.Context(), sample()); err != nil || lost != 0 {
		t.Fatal(lost, err)
	}
	if len(c.requests) != 2 || c.requests[1].URL.Path != "/base/v1/traces" || c.requests[1].Header.Get("Api-Key") != "hush" || c.requests[1].Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%d requests, the last for %s with headers %v", len(c.requests), c.requests[1].URL, c.requests[1].Header)
	}
	spans := c.spans()
	if len(spans) != 1 {
		t.Fatalf("got %d spans, want the one that has ended", len(spans))
	}
	p, want := spans[0], sample()[0]
	if hex.EncodeToString(p.TraceId) != want.TraceID || hex.EncodeToString(p.SpanId) != want.SpanID || hex.EncodeToString(p.ParentSpanId) != want.Parent || p.TraceState != want.State || p.Flags != 1 {
		t.Errorf("the ids are those of %v", p)
	}
	if p.Name != want.Name || p.Kind != trace.Span_SPAN_KIND_CLIENT || p.StartTimeUnixNano != uint64(want.Start.UnixNano()) || p.EndTimeUnixNano != uint64(want.End.UnixNano()) {
		t.Errorf("got %v", p)
	}
	a := p.Attributes
	if len(a) != 3 || a[0].Value.GetStringValue() != "not \uFFFD UTF-8" || a[1].Value.GetIntValue() != 7 || a[2].Value.GetArrayValue().Values[1].GetStringValue() != "b" {
		t.Errorf("the attributes are %v", a)
	}
	if len(p.Events) != 1 || p.Events[0].Name != "then" || len(p.Links) != 1 || hex.EncodeToString(p.Links[0].SpanId) != want.Links[0].SpanID {
		t.Errorf("events %v, links %v", p.Events, p.Links)
	}
	if p.Status.GetCode() != trace.Status_STATUS_CODE_ERROR || p.Status.Message != "why" {
		t.Errorf("the status is %v", p.Status)
	}
	of := c.got[0].ResourceSpans[0]
	if r := of.Resource.Attributes; len(r) != 2 || r[0].Key != "service.name" || r[0].Value.GetStringValue() != "reprise" || r[1].Value.GetStringValue() != "1.2" {
		t.Errorf("the resource is %v", r)
	}
}

// TestSendRefused holds that a request that a collector refuses is not made again, and that its
// words reach the error without escape codes.
func TestSendRefused(t *testing.T) {
	c := newCollector(t, http.StatusBadRequest)
	s, err := traces.NewSender(strings.Replace(c.URL, "//", "//me:hush@", 1)+"/v1/traces", nil, traces.Resource{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Send(t.Context(), sample())
	if err == nil || !strings.Contains(err.Error(), "HTTP 400 Bad Request: not now [2J") || strings.Contains(err.Error(), "hush") {
		t.Errorf("got the error %q", err)
	}
	if len(c.requests) != 1 || c.requests[0].URL.Path != "/v1/traces" {
		t.Errorf("%d requests, the first for %s", len(c.requests), c.requests[0].URL)
	}
	c.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Send(ended, sample()); err == nil {
		t.Error("spans were sent to a collector that is gone")
	}
}

// TestSendInPart holds that spans which a collector rejects are counted, and not sent again.
func TestSendInPart(t *testing.T) {
	c := newCollector(t)
	c.reject = 1
	s, err := traces.NewSender(c.URL, nil, traces.Resource{})
	if err != nil {
		t.Fatal(err)
	}
	lost, err := s.Send(t.Context(), append(sample()[:1], sample()[0]))
	if err == nil || !strings.Contains(err.Error(), "it rejected 1 of 2: too old [2J") || lost != 1 || len(c.requests) != 1 {
		t.Errorf("%d spans were lost in %d requests: %v", lost, len(c.requests), err)
	}
}

// TestSendRedirected holds that a redirection is an error and is not followed: the page that it leads
// to answers every request.
func TestSendRedirected(t *testing.T) {
	followed := false
	page := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer page.Close()
	moved := httptest.NewServer(http.RedirectHandler(page.URL, http.StatusMovedPermanently))
	defer moved.Close()
	s, err := traces.NewSender(moved.URL, nil, traces.Resource{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), sample()); err == nil || !strings.Contains(err.Error(), "HTTP 301") || followed {
		t.Errorf("got the error %v; the redirection was followed: %t", err, followed)
	}
}

// TestSendPauses holds that an overloaded collector that names no pause is not asked again at once.
func TestSendPauses(t *testing.T) {
	for _, after := range []string{"0", "-1", "soon"} {
		ctx, cancel := context.WithCancel(t.Context())
		requests := 0
		c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests++; requests == 20 {
				cancel()
			}
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		s, err := traces.NewSender(c.URL, nil, traces.Resource{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		stop := time.AfterFunc(200*time.Millisecond, cancel)
		if _, err := s.Send(ctx, sample()); err == nil || requests >= 20 {
			t.Errorf("Retry-After: %s: %d requests in %v, then %v", after, requests, time.Since(began), err)
		}
		stop.Stop()
		c.Close()
	}
}

// TestSendLarge holds that spans with much content are sent in requests that a collector takes, and
// that one that it refuses does not keep the others from it.
func TestSendLarge(t *testing.T) {
	c := newCollector(t, http.StatusRequestEntityTooLarge)
	s, err := traces.NewSender(c.URL, nil, traces.Resource{})
	if err != nil {
		t.Fatal(err)
	}
	var spans []projections.Span
	for _, size := range []int{5 << 20, 3 << 20, 3 << 20, 1} {
		span := sample()[0]
		span.Attributes = []projections.SpanAttribute{{Key: "text", Text: strings.Repeat("x", size)}}
		spans = append(spans, span)
	}
	lost, err := s.Send(t.Context(), spans)
	if got := c.spans(); err == nil || lost != 1 || !strings.Contains(err.Error(), "HTTP 413") || len(got) != 3 || len(c.requests) != 3 {
		t.Errorf("%d spans in %d requests, and the error %v", len(got), len(c.requests), err)
	}
}

func TestNoCollector(t *testing.T) {
	for _, address := range []string{"", "localhost:4318", "ftp://x", "http://", "http://a b", "://", "http://me:hush@[::1"} {
		if _, err := traces.NewSender(address, nil, traces.Resource{}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: got the error %v", address, err)
		}
	}
}

// TestJSON holds that a document in JSON has its ids in hex and its numbers as OTLP wants them.
func TestJSON(t *testing.T) {
	b, err := traces.Resource{Service: "mine"}.JSON(sample())
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, ParentSpanID, StartTimeUnixNano string
					Kind                                             int
					Links                                            []struct{ TraceID, SpanID string }
					Status                                           struct{ Code int }
				}
			}
		}
	}
	if err := json.Unmarshal(b, &d); err != nil || strings.Contains(string(b), "\n") {
		t.Fatalf("%s: %v", b, err)
	}
	spans, want := d.ResourceSpans[0].ScopeSpans[0].Spans, sample()[0]
	if len(spans) != 1 {
		t.Fatalf("%d spans in %s", len(spans), b)
	}
	s := spans[0]
	if s.TraceID != want.TraceID || s.SpanID != want.SpanID || s.ParentSpanID != want.Parent || s.Links[0].SpanID != want.Links[0].SpanID ||
		s.Kind != 3 || s.Status.Code != 2 || s.StartTimeUnixNano != "1700000000000000005" {
		t.Errorf("got %+v", s)
	}
}
