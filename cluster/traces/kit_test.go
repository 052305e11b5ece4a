package traces_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	coltrace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// collector is a collector over HTTP that decodes what it takes.
type collector struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	// refuse are the answers to the next requests, before one is taken.
	refuse []int
	// reject is the number of spans that its answers report as rejected.
	reject   int64
	requests []*http.Request
	got      []*trace.TracesData
	came     chan struct{} // one for each request that was answered
}

func newCollector(t *testing.T, refuse ...int) *collector {
	t.Helper()
	c := &collector{t: t, refuse: refuse, came: make(chan struct{}, 100)}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// ServeHTTP takes a request, or refuses it.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.came <- struct{}{} }()
	c.requests = append(c.requests, r)
	if len(c.refuse) > 0 {
		status := c.refuse[0]
		c.refuse = c.refuse[1:]
		http.Error(w, "not now\x1b[2J", status)
		return
	}
	data := new(trace.TracesData)
	body, err := gzip.NewReader(r.Body)
	if err == nil {
		var b []byte
		if b, err = io.ReadAll(body); err == nil {
			err = proto.Unmarshal(b, data)
		}
	}
	if err != nil {
		c.t.Errorf("the request cannot be read: %v", err)
	}
	c.got = append(c.got, data)
	answer := new(coltrace.ExportTraceServiceResponse)
	if c.reject > 0 {
		answer.PartialSuccess = &coltrace.ExportTracePartialSuccess{RejectedSpans: c.reject, ErrorMessage: "too old\x1b[2J"}
	}
	b, err := proto.Marshal(answer)
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		c.t.Error(err)
	}
}

// spans returns all spans that were taken.
func (c *collector) spans() (list []*trace.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, data := range c.got {
		for _, of := range data.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				list = append(list, scope.Spans...)
			}
		}
	}
	return list
}

// sample are the spans of a turn: one that has ended, with all that a span may have, and one that
// has not.
func sample() []projections.Span {
	n, at := int64(7), time.Unix(1_700_000_000, 5).UTC()
	return []projections.Span{
		{
			TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331", Parent: "c7ad6b7169203331", State: "a=1", Flags: 1,
			Name: "chat small", Kind: projections.SpanClient, Turn: messages.TurnID("t3"), Start: at, End: at.Add(time.Second),
			Attributes: []projections.SpanAttribute{{Key: "text", Text: "not \xff UTF-8"}, {Key: "number", Number: &n}, {Key: "texts", Texts: []string{"a", "b"}}},
			Events:     []projections.SpanEvent{{Name: "then", At: at, Attributes: []projections.SpanAttribute{{Key: "k", Text: "v"}}}},
			Links:      []projections.SpanLink{{TraceID: "1af7651916cd43dd8448eb211c80319c", SpanID: "d7ad6b7169203331"}},
			Error:      "overloaded", Message: "why",
		},
		{TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "e7ad6b7169203331", Name: "still runs", Start: at},
	}
}
