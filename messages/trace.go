package messages

import (
	"context"
	"iter"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The headers of a message that hold its trace context, as W3C Trace Context names them.
const (
	HeaderTraceParent = "traceparent"
	HeaderTraceState  = "tracestate"
)

// maxTraceState is the most bytes of a tracestate that are kept: as many as W3C wants passed on.
const maxTraceState = 512

// TraceContext is a W3C trace context: a traceparent, and behind a space the tracestate if there is
// one. The zero value is none.
type TraceContext string

// TraceOf returns the trace context in the headers of a message. One that is malformed is none: W3C
// Trace Context has its receiver begin a new trace.
func TraceOf(header Header) TraceContext {
	parent := headerOf(header, HeaderTraceParent)
	if parent == "" {
		return ""
	}
	carrier := propagation.MapCarrier{HeaderTraceParent: parent, HeaderTraceState: headerOf(header, HeaderTraceState)}
	return TraceIn(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// headerOf returns a header by its name in lower case, or as carriers for HTTP write that.
func headerOf(header Header, name string) string {
	if value := header(name); value != "" {
		return value
	}
	return header(strings.ToUpper(name[:1]) + name[1:])
}

// TraceIn returns the trace context of the span that is in ctx. Empty: there is none.
func TraceIn(ctx context.Context) TraceContext {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	t := TraceContext(carrier[HeaderTraceParent])
	if state := carrier[HeaderTraceState]; state != "" && len(state) <= maxTraceState {
		t += TraceContext(" " + state)
	}
	return t
}

// NewTrace returns the trace context of a span.
func NewTrace(span trace.SpanContextConfig) TraceContext {
	return TraceIn(trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(span)))
}

// Parent returns the traceparent, State the tracestate. Empty: there is none.
func (t TraceContext) Parent() string {
	parent, _, _ := strings.Cut(string(t), " ")
	return parent
}

// State returns the tracestate. Empty: there is none.
func (t TraceContext) State() string {
	_, state, _ := strings.Cut(string(t), " ")
	return state
}

// Headers yields what a message with the trace context has of it: [HeaderTraceParent] and
// [HeaderTraceState], each with its value, unless that is empty.
func (t TraceContext) Headers() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		parent, state := t.Parent(), t.State()
		if parent != "" && yield(HeaderTraceParent, parent) && state != "" {
			yield(HeaderTraceState, state)
		}
	}
}

// Context returns ctx with the span as one of another process, as instrumentation by OpenTelemetry
// looks for it. Without a trace context that is ctx.
func (t TraceContext) Context(ctx context.Context) context.Context {
	if t == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{HeaderTraceParent: t.Parent(), HeaderTraceState: t.State()})
}

// Span returns the span. It is not valid if there is none.
func (t TraceContext) Span() trace.SpanContext {
	return trace.SpanContextFromContext(t.Context(context.Background()))
}
