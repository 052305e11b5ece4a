package cli_test

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collected is what a collector has taken with one request.
type collected struct {
	key, service string
	spans        []*otlp.Span
}

// newCollector takes spans by OTLP over HTTP.
func newCollector(t *testing.T) (url string, came <-chan collected) {
	t.Helper()
	got := make(chan collected, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		var b []byte
		if err == nil {
			b, err = io.ReadAll(body)
		}
		var data otlp.TracesData
		if err == nil {
			err = proto.Unmarshal(b, &data)
		}
		if err != nil {
			t.Errorf("the request cannot be read: %v", err)
			return
		}
		of := data.ResourceSpans[0]
		got <- collected{r.Header.Get("Api-Key"), of.Resource.Attributes[0].Value.GetStringValue(), of.ScopeSpans[0].Spans}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// TestTraces holds that a node sends spans to the collector that the environment names, in the trace
// that an ask was made in, and that traces shows, prints and sends the same ones.
func TestTraces(t *testing.T) {
	w := newWorld(t)
	url, came := newCollector(t)
	w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+url, "OTEL_EXPORTER_OTLP_HEADERS=api-key=hush%2C", "OTEL_SERVICE_NAME=helpdesk",
		"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	w.dev()
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
	live := <-came
	if live.key != "hush," || live.service != "helpdesk" || len(live.spans) != 4 || hex.EncodeToString(live.spans[0].ParentSpanId) != "b7ad6b7169203331" {
		t.Errorf("the node sent %+v", live)
	}

	root := hex.EncodeToString(live.spans[0].SpanId)
	w.run("traces", "assistant/main").exits(0, "0af7651916cd43dd8448eb211c80319c, below span b7ad6b7169203331", root, "invoke_agent assistant", "  execute_tool calculator", "completed")
	w.run("traces", "assistant/main", "--otlp", url, "--turn", "t4").exits(0, "sent 4 spans of 1 turn")
	if again := <-came; again.key != "hush," || again.service != "helpdesk" || len(again.spans) != 4 || !proto.Equal(again.spans[1], live.spans[1]) {
		t.Errorf("sent again was %+v, first %+v", again, live)
	}
	lines := w.run("traces", "assistant/main", "-o", "json").exits(0, `"traceId":"0af7651916cd43dd8448eb211c80319c"`, `"spanId":"`+root+`"`)
	if n := len(lines.objects()); n != 1 || strings.Contains(lines.out, "17 times 3") {
		t.Errorf("%d lines: %s", n, lines.out)
	}
	w.run("traces", "assistant/main", "-o", "json", "--content").exits(0, "17 times 3")
	if r := w.run("traces", "assistant/main", "--since", "2100-01-01").exits(0); r.out != "" {
		t.Errorf("turns of another century: %s", r.out)
	}

	w.run("traces", "assistant/main", "--turn", "t99").exits(1, "t99", "turns")
	w.run("traces", "assistant/none").exits(1, "does not exist")
	w.run("traces", "assistant/main", "--otlp", "localhost:4318").exits(2, "--otlp", "http://localhost:4318")
	w.env = append(w.env, "OTEL_EXPORTER_OTLP_HEADERS=hush")
	if r := w.run("traces", "assistant/main", "--otlp", url).exits(2, "$OTEL_EXPORTER_OTLP_HEADERS", "name=value"); strings.Contains(r.err, "hush") {
		t.Errorf("the error shows a header: %s", r.err)
	}
}
