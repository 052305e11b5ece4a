package messages

import (
	"context"
	"maps"
	"strings"
	"testing"
)

const (
	sampledTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	quietTrace   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-00"
)

// TestTraceOf holds that a trace context is taken from the headers of a message, and that a malformed
// one is none and no error.
func TestTraceOf(t *testing.T) {
	for name, c := range map[string]struct {
		headers map[string]string
		want    TraceContext
	}{
		"none":                  {nil, ""},
		"a parent":              {map[string]string{"traceparent": sampledTrace}, sampledTrace},
		"not sampled":           {map[string]string{"traceparent": quietTrace}, quietTrace},
		"as HTTP writes it":     {map[string]string{"Traceparent": sampledTrace, "Tracestate": "a=1"}, sampledTrace + " a=1"},
		"with a state":          {map[string]string{"traceparent": sampledTrace, "tracestate": "a=1,b=2"}, sampledTrace + " a=1,b=2"},
		"a later version":       {map[string]string{"traceparent": "01" + sampledTrace[2:] + "-more"}, sampledTrace},
		"a malformed state":     {map[string]string{"traceparent": sampledTrace, "tracestate": "\x1b[31m"}, sampledTrace},
		"a state that is long":  {map[string]string{"traceparent": sampledTrace, "tracestate": strings.Repeat("a", 250) + "=" + strings.Repeat("b", 256) + ",c=" + strings.Repeat("d", 200)}, sampledTrace},
		"a state alone":         {map[string]string{"tracestate": "a=1"}, ""},
		"no version ff":         {map[string]string{"traceparent": "ff" + sampledTrace[2:]}, ""},
		"no trace id of zeros":  {map[string]string{"traceparent": "00-" + strings.Repeat("0", 32) + sampledTrace[35:]}, ""},
		"no span id of zeros":   {map[string]string{"traceparent": sampledTrace[:36] + strings.Repeat("0", 16) + "-01"}, ""},
		"no upper case":         {map[string]string{"traceparent": strings.ToUpper(sampledTrace)}, ""},
		"too short":             {map[string]string{"traceparent": sampledTrace[:54]}, ""},
		"garbage":               {map[string]string{"traceparent": "\x00\x1b[2J\xff"}, ""},
		"the parts of another":  {map[string]string{"traceparent": sampledTrace + " a=1"}, ""},
		"more than the version": {map[string]string{"traceparent": sampledTrace + "-more"}, ""},
	} {
		got := TraceOf(func(name string) string { return c.headers[name] })
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if back := TraceIn(got.Context(context.Background())); back != got {
			t.Errorf("%s: through a context %q became %q", name, got, back)
		}
		if back := TraceOf(Header(func(name string) string { return maps.Collect(got.Headers())[name] })); back != got {
			t.Errorf("%s: through headers %q became %q", name, got, back)
		}
		if got.Span().IsValid() != (c.want != "") {
			t.Errorf("%s: the span of %q is %v", name, got, got.Span())
		}
	}
}

// TestForeignTrace holds that a text that is no trace context, as a foreign frame may hold, is none.
func TestForeignTrace(t *testing.T) {
	for _, text := range []TraceContext{" ", "x", "\x1b[2J", TraceContext(sampledTrace[:40]), TraceContext(strings.Repeat("0", 1<<16))} {
		if text.Span().IsValid() || TraceIn(text.Context(context.Background())) != "" {
			t.Errorf("%.20q passes for a trace context", text)
		}
	}
}

func TestTurnAt(t *testing.T) {
	for _, n := range []EventNumber{1, 12, 1 << 40} {
		if got := TurnAt(n).Start(); got != n {
			t.Errorf("the turn that starts with event %d starts with %d", n, got)
		}
	}
	for _, id := range []TurnID{"", "t", "12", "tx", "t-1"} {
		if got := id.Start(); got != 0 {
			t.Errorf("turn %q starts with event %d", id, got)
		}
	}
}
