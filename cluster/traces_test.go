package cluster_test

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// collector takes spans by OTLP over HTTP.
type collector struct {
	*httptest.Server
	spans chan *otlp.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: make(chan *otlp.Span, 1000)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b []byte
		body, err := gzip.NewReader(r.Body)
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
		for _, s := range data.ResourceSpans[0].ScopeSpans[0].Spans {
			c.spans <- s
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// take returns the next n spans that come, by their ids.
func (w *world) take(c *collector, n int) map[string]*otlp.Span {
	w.t.Helper()
	came := make(map[string]*otlp.Span)
	for range n {
		select {
		case s := <-c.spans:
			came[hex.EncodeToString(s.SpanId)] = s
		case <-w.ctx.Done():
			w.t.Fatalf("%d of %d spans have come", len(came), n)
		}
	}
	return came
}

func sentTo(c *collector) change {
	return func(cfg *cluster.Config) { cfg.Telemetry = cluster.Telemetry{OTLP: c.URL} }
}

// traces returns the spans that the log yields, the turn's own first.
func (w *world) traces(c *client.Client, agent string) (list []projections.Span) {
	w.t.Helper()
	for line, err := range c.Query(w.ctx, agent, messages.Query{View: "traces"}) {
		w.ok(err)
		var s projections.Span
		w.ok(json.Unmarshal(line, &s))
		list = append(list, s)
	}
	return list
}

// named returns the first span whose name begins so.
func named(t *testing.T, spans []projections.Span, name string) projections.Span {
	t.Helper()
	for _, s := range spans {
		if strings.HasPrefix(s.Name, name) {
			return s
		}
	}
	t.Fatalf("no span is named %s in %+v", name, spans)
	return projections.Span{}
}

// equal checks that a span that was sent is what the log yields.
func equal(t *testing.T, sent *otlp.Span, s projections.Span) {
	t.Helper()
	if sent == nil {
		t.Errorf("%s, %s, was not sent", s.Name, s.SpanID)
		return
	}
	if sent.Name != s.Name || hex.EncodeToString(sent.TraceId) != s.TraceID || hex.EncodeToString(sent.ParentSpanId) != s.Parent || len(sent.Attributes) != len(s.Attributes) ||
		sent.StartTimeUnixNano != uint64(s.Start.UnixNano()) || sent.EndTimeUnixNano != uint64(s.End.UnixNano()) {
		t.Errorf("sent was %v, the log gives %+v", sent, s)
	}
}

// delegating is a parent whose tool is a child whose tool is a program that prints its trace context.
func delegating(t *testing.T) change {
	program, err := toolbox.Command(toolbox.CommandConfig{Name: "program", Description: "d", OnUnknown: tool.ReadOnly, Command: []string{"/bin/sh", "-c", `printf "$TRACEPARENT/$TRACESTATE"`}})
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.Func(func(r providers.Request) scripted.Step {
		last := r.Items[len(r.Items)-1]
		if last.Type == messages.ItemCallOutput {
			return scripted.Say(last.Output)
		}
		calls := map[string]scripted.Call{"parent": {ID: "c1", Name: "child", Arguments: `{"input":"go"}`}, "child": {ID: "c1", Name: "program", Arguments: `{}`}}
		return scripted.Ask(calls[r.Agent.Kind])
	})
	return func(c *cluster.Config) {
		c.Providers = providers.Set{"test": model}
		c.Agents = []actors.Definition{
			{Kind: "parent", Model: "test/m", Tools: []tool.Tool{actors.AsTool("child", "asks the child")}},
			{Kind: "child", Model: "test/m", Tools: []tool.Tool{program}},
		}
	}
}

// TestTraces holds that a trace continues from the header of an input to the turn, to the turn of
// a child, and to the program that is the child's tool, and that what the node sends when turns
// end is what the log yields for them.
func TestTraces(t *testing.T) {
	embeddedtest.Long(t, "processes")
	w := newWorld(t)
	to := newCollector(t)
	n := w.node(delegating(t), sentTo(to))
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	in := nats.NewMsg("reprise.in.default.parent.a")
	in.Header.Set("traceparent", caller)
	in.Header.Set("tracestate", "vendor=1")
	in.Data = []byte("go")
	w.ok(w.nc.PublishMsg(in))
	output := w.until(n.Client(), "parent/a", ofType("turn.completed")).field("output")

	parent := w.traces(n.Client(), "parent/a")
	call := named(t, parent, "execute_tool child")
	of := call.Attribute("reprise.child")
	child := w.traces(n.Client(), of)
	run := named(t, child, "execute_tool program")
	if parent[0].TraceID != caller[3:35] || parent[0].Parent != caller[36:52] || child[0].TraceID != parent[0].TraceID || child[0].Parent != call.SpanID {
		t.Errorf("the caller's span is %s, the parent's turn %+v, its call %+v, the child's turn %+v", caller, parent[0], call, child[0])
	}
	if want := "00-" + run.TraceID + "-" + run.SpanID + "-01/vendor=1"; output != want {
		t.Errorf("the program had the trace context %q, want %q", output, want)
	}
	sent := w.take(to, len(parent)+len(child))
	for _, s := range append(parent, child...) {
		equal(t, sent[s.SpanID], s)
	}
}

// TestTracesMalformed holds that an input whose trace context is malformed is taken like one without,
// and its turn begins a trace of its own.
func TestTracesMalformed(t *testing.T) {
	w := newWorld(t)
	n := w.node()
	in := nats.NewMsg("reprise.in.default.assistant.a")
	in.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 \x1b[2J")
	in.Header.Set("tracestate", strings.Repeat("x", 10_000))
	in.Data = []byte("go")
	w.ok(w.nc.PublishMsg(in))
	w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	spans := w.traces(n.Client(), "assistant/a")
	if len(spans) != 2 || spans[0].Parent != "" || strings.HasPrefix(spans[0].TraceID, "0af7") || spans[0].State != "" {
		t.Errorf("got %+v", spans)
	}
}

// TestTracesRestart holds that a turn whose node ended in its middle has whole spans, in the trace of
// its caller, and that the next node sends them.
func TestTracesRestart(t *testing.T) {
	w := newWorld(t)
	gate := scripted.NewGate()
	n := w.node(agents(scripted.New(scripted.Held(gate, scripted.Say("lost"))), nil))
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	in := nats.NewMsg("reprise.in.default.assistant.a")
	in.Header.Set("Traceparent", caller)
	in.Data = []byte("go")
	w.ok(w.nc.PublishMsg(in))
	w.until(n.Client(), "assistant/a", ofType("model.requested"))
	w.ok(n.Close())

	to := newCollector(t)
	n = w.node(sentTo(to))
	w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	spans := w.traces(n.Client(), "assistant/a")
	var outcomes []string
	sent := w.take(to, len(spans))
	for _, s := range spans {
		equal(t, sent[s.SpanID], s)
		outcomes = append(outcomes, s.Name+" "+s.Error)
	}
	if want := "invoke_agent assistant ,chat model lost,chat model "; strings.Join(outcomes, ",") != want || spans[0].Parent != caller[36:52] {
		t.Errorf("got %q below %s, want %q", outcomes, spans[0].Parent, want)
	}
}

// TestTracesNoCollector holds that a collector that hangs or is gone keeps no agent from its work, nor
// the node from ending.
func TestTracesNoCollector(t *testing.T) {
	w := newWorld(t)
	came, hangs := make(chan struct{}, 100), make(chan struct{})
	to := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-hangs
	}))
	defer to.Close()
	defer close(hangs)
	n := w.node(func(cfg *cluster.Config) { cfg.Telemetry.OTLP = to.URL })
	w.say(n.Client(), "assistant/a", "1", "hello")
	<-came
	for _, id := range []string{"2", "3", "4"} {
		w.say(n.Client(), "assistant/a", id, "hello")
	}
	to.Listener.Close()
	w.say(n.Client(), "assistant/b", "1", "hello")
	w.ok(n.Close())
}
