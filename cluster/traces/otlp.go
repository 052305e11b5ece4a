// Package traces sends the spans of turns to a collector of OpenTelemetry, by OTLP over HTTP.
//
// # Guarantees
//
//   - An [Exporter] is never on an agent's way: it takes turns that have ended into a bounded
//     queue, and drops and counts those that do not fit. Spans that were dropped or lost can be
//     made again from the log, with the same ids.
//   - What users, models and tools wrote is sent only where content was asked for, and never of
//     encrypted agents by an Exporter: no copy of their text outlives their key.
package traces

import (
	"encoding/hex"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/reprise-dev/reprise/projections"
)

// Resource is what the spans are of, as OpenTelemetry names it.
type Resource struct {
	// Service is the attribute service.name. Empty: reprise.
	Service string
	// Version is that of the program.
	Version string
}

// scope names what has made the spans.
const scope = "github.com/reprise-dev/reprise"

// Data returns spans in the form of OTLP. Those that have not ended are left out.
func (r Resource) Data(spans []projections.Span) *trace.TracesData {
	if r.Service == "" {
		r.Service = "reprise"
	}
	of := &resource.Resource{Attributes: []*common.KeyValue{text("service.name", r.Service)}}
	if r.Version != "" {
		of.Attributes = append(of.Attributes, text("service.version", r.Version))
	}
	list := &trace.ScopeSpans{Scope: &common.InstrumentationScope{Name: scope, Version: r.Version}}
	for _, s := range spans {
		if !s.End.IsZero() {
			list.Spans = append(list.Spans, protoSpan(s))
		}
	}
	return &trace.TracesData{ResourceSpans: []*trace.ResourceSpans{{Resource: of, ScopeSpans: []*trace.ScopeSpans{list}}}}
}

// kinds are those of spans in OTLP.
var kinds = map[projections.SpanKind]trace.Span_SpanKind{
	projections.SpanInternal: trace.Span_SPAN_KIND_INTERNAL,
	projections.SpanClient:   trace.Span_SPAN_KIND_CLIENT,
}

func protoSpan(s projections.Span) *trace.Span {
	p := &trace.Span{
		TraceId: id(s.TraceID), SpanId: id(s.SpanID), ParentSpanId: id(s.Parent), TraceState: s.State, Flags: uint32(s.Flags),
		Name: s.Name, Kind: kinds[s.Kind], StartTimeUnixNano: nanos(s.Start), EndTimeUnixNano: nanos(s.End), Attributes: attributes(s.Attributes),
	}
	for _, e := range s.Events {
		p.Events = append(p.Events, &trace.Span_Event{TimeUnixNano: nanos(e.At), Name: e.Name, Attributes: attributes(e.Attributes)})
	}
	for _, l := range s.Links {
		p.Links = append(p.Links, &trace.Span_Link{TraceId: id(l.TraceID), SpanId: id(l.SpanID)})
	}
	if s.Error != "" {
		p.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: s.Message}
	}
	return p
}

// id returns the bytes of an id in hex; none if it is not in hex.
func id(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) == 0 {
		return nil
	}
	return b
}

func nanos(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

func attributes(list []projections.SpanAttribute) (made []*common.KeyValue) {
	for _, a := range list {
		switch {
		case a.Number != nil:
			made = append(made, &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: *a.Number}}})
		case a.Texts != nil:
			made = append(made, &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: values(a.Texts)}}}})
		default:
			made = append(made, text(a.Key, a.Text))
		}
	}
	return made
}

func text(key, s string) *common.KeyValue { return &common.KeyValue{Key: key, Value: value(s)} }

func value(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(s, "\uFFFD")}}
}

func values(texts []string) (made []*common.AnyValue) {
	for _, s := range texts {
		made = append(made, value(s))
	}
	return made
}
