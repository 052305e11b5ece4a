package projections

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-dev/reprise/messages"
)

// Span returns the trace context of the turn's own span. Its ids follow from the log alone, so that
// they are the same wherever they are computed. The trace is that of the turn's trace context or, without
// one, made of the agent, the turn, and the id of its first input.
func (t *Turn) Span(a messages.AgentID) messages.TraceContext { return t.span(a) }

// CallSpan returns the trace context of the newest attempt of a tool call of the turn.
func (t *Turn) CallSpan(a messages.AgentID, c *ToolCall) messages.TraceContext {
	return t.span(a, "tool", strconv.Itoa(c.Step), string(c.ID), strconv.Itoa(c.Attempt))
}

// modelCallSpan returns the trace context of an attempt at a model call of the turn.
func (t *Turn) modelCallSpan(a messages.AgentID, call messages.CallID) messages.TraceContext {
	return t.span(a, "model", string(call))
}

// waitSpan returns the trace context of the turn's pause that event n recorded.
func (t *Turn) waitSpan(a messages.AgentID, n messages.EventNumber) messages.TraceContext {
	return t.span(a, "wait", strconv.FormatUint(uint64(n), 10))
}

// span returns the trace context of the span of the turn that the names name.
func (t *Turn) span(a messages.AgentID, names ...string) messages.TraceContext {
	in := t.Trace.Span()
	id, flags := in.TraceID(), in.TraceFlags()
	if !in.IsValid() {
		first := ""
		if len(t.Inputs) > 0 {
			first = t.Inputs[0]
		}
		sum := hashOf("trace", a.Full(), string(t.ID), first)
		id, flags = trace.TraceID(sum[:]), trace.FlagsSampled
	}
	sum := hashOf(append([]string{"span", a.Full(), string(t.ID)}, names...)...)
	return messages.NewTrace(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID(sum[:8]), TraceFlags: flags, TraceState: in.TraceState()})
}

// hashOf returns a hash of names, cut to 16 bytes.
func hashOf(names ...string) [16]byte {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return [16]byte(sum[:])
}
