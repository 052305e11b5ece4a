package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Span is a span of OpenTelemetry, made of the log: a line of `reprise traces`. Its names and
// attributes are those of OpenTelemetry's conventions for generative AI; those that begin with
// "reprise." are ours.
type Span struct {
	// TraceID is the id of the trace, in hex.
	TraceID string `json:"trace_id"`
	// SpanID is the id of the span, in hex.
	SpanID string `json:"span_id"`
	// Parent is the id of the span above, in hex. Empty: this is the root of a trace.
	Parent string `json:"parent_span_id,omitempty"`
	// State is the tracestate of the trace.
	State string `json:"trace_state,omitempty"`
	// Flags are the flags of the traceparent: 1 if the trace is sampled.
	Flags byte `json:"flags"`
	// Name is the name of the span, such as `execute_tool refund`.
	Name string `json:"name"`
	// Kind is the kind of the span.
	Kind SpanKind `json:"kind"`
	// Turn is the turn that it belongs to.
	Turn messages.TurnID `json:"turn"`
	// Start is when it began.
	Start time.Time `json:"start"`
	// End is when it ended. Zero: it has not.
	End time.Time `json:"end,omitzero"`
	// Attributes are its attributes, by the GenAI conventions of OpenTelemetry.
	Attributes []SpanAttribute `json:"attributes,omitempty"`
	// Events are moments within the span, such as an approval.
	Events []SpanEvent `json:"events,omitempty"`
	// Links are spans of other traces that caused a part of this one.
	Links []SpanLink `json:"links,omitempty"`
	// Error is why it failed, as in the attribute error.type. Empty: it did not fail.
	Error string `json:"error,omitempty"`
	// Message is the same in words for a person. Empty: the texts were not asked for.
	Message string `json:"message,omitempty"`
}

// SpanKind is the kind of a span, as OpenTelemetry names it.
type SpanKind string

// The kinds.
const (
	SpanInternal SpanKind = "internal" // a turn, or a call of a tool
	SpanClient   SpanKind = "client"   // a call of a model
)

// SpanAttribute is an attribute of a span. One of Text, Number and Texts is its value.
type SpanAttribute struct {
	// Key is the name of the attribute.
	Key string `json:"key"`
	// Text is its value, if that is a text.
	Text string `json:"text,omitempty"`
	// Number is its value, if that is a number.
	Number *int64 `json:"number,omitempty"`
	// Texts is its value, if that is a list of texts.
	Texts []string `json:"texts,omitempty"`
}

// SpanEvent is a moment within a span.
type SpanEvent struct {
	// Name is the name of the event.
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	// Attributes are its attributes.
	Attributes []SpanAttribute `json:"attributes,omitempty"`
}

// SpanLink is a span of another trace that caused a part of this one.
type SpanLink struct {
	// TraceID is the trace of the other span, in hex.
	TraceID string `json:"trace_id"`
	// SpanID is the other span, in hex.
	SpanID string `json:"span_id"`
}

// Attribute returns the value of a text attribute. Empty: the span has none of that name.
func (s *Span) Attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Text
		}
	}
	return ""
}

// Count returns the value of a number attribute. Nil: the span has none of that name.
func (s *Span) Count(key string) *int64 {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Number
		}
	}
	return nil
}

// say adds a text, unless it is empty.
func (s *Span) say(key, text string) {
	if text != "" {
		s.Attributes = append(s.Attributes, SpanAttribute{Key: key, Text: text})
	}
}

// count adds a number.
func (s *Span) count(key string, n int64) {
	s.Attributes = append(s.Attributes, SpanAttribute{Key: key, Number: &n})
}

// uses adds what model calls used.
func (s *Span) uses(u messages.Usage) {
	s.count("gen_ai.usage.input_tokens", int64(u.Input))
	s.count("gen_ai.usage.output_tokens", int64(u.Output))
	if u.Cached > 0 {
		s.count("gen_ai.usage.cache_read.input_tokens", int64(u.Cached))
	}
	if u.Reasoning > 0 {
		s.count("gen_ai.usage.reasoning.output_tokens", int64(u.Reasoning))
	}
}

// fail records why what the span shows failed; an empty kind: it did not.
func (s *Span) fail(kind string) {
	s.Error = kind
	s.say("error.type", kind)
}
