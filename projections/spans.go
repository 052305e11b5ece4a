package projections

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// Spans folds an agent's turns into spans of OpenTelemetry: one for each turn, attempt at a model
// call, attempt at a tool call, and time in which the turn waited for a person. Folding the events
// of a turn, from its turn.started on, yields the same spans as folding all events before them, too,
// except for the content of inputs that were accepted before.
type Spans struct {
	// Agent is the agent whose events are folded.
	Agent messages.AgentID
	// Content adds what was asked and answered, arguments and results, up to MaxSpanText bytes of
	// each text.
	Content bool

	origin
	inputs acceptedInputs
	turn   *tracedTurn // the one that has not ended; nil: none
	ended  []Span
	lacks  bool
}

// MaxSpanText is the most bytes of a text that a span holds.
const MaxSpanText = 16 << 10

// Apply folds event number n.
func (s *Spans) Apply(n messages.EventNumber, ev messages.Event) {
	e := s.event(n, ev)
	s.inputs.accept(e)
	if e.Is(messages.BeginsTurn) {
		ids := messages.InputsOf(ev)
		s.lacks = s.lacks || len(s.inputs.of(ids)) < len(ids)
		s.turn = newTracedTurn(e.Turn, s.inputs)
	}
	if s.turn != nil {
		s.turn.apply(e)
		if e.Is(messages.EndsTurn) && e.Turn == s.turn.details.ID {
			s.ended, s.turn = append(s.ended, s.turn.spans(s)...), nil
		}
	}
	if s.inputs.drop(e); e.Is(messages.EndsAgent) {
		s.turn = nil
	}
}

// Take returns the spans of the turns that have ended since it was last called, a turn before what
// is below it.
func (s *Spans) Take() []Span {
	list := s.ended
	s.ended = nil
	return list
}

// Lacks reports whether a turn has inputs that were accepted before the first event that was folded:
// their content is not known.
func (s *Spans) Lacks() bool { return s.lacks }

// Open returns the spans of the turn that has not ended, so far.
func (s *Spans) Open() []Span {
	if s.turn == nil {
		return nil
	}
	return s.turn.spans(s)
}

// tracedTurn is a turn with what its spans are made of.
type tracedTurn struct {
	details  TurnDetails
	attempts []toolAttempt
	finishes map[messages.CallID]string // how the answers of model calls ended
	events   []SpanEvent
	links    []SpanLink
}

func newTracedTurn(id messages.TurnID, waiting acceptedInputs) *tracedTurn {
	t := &tracedTurn{details: TurnDetails{ID: id}, finishes: make(map[messages.CallID]string)}
	t.details.inputs.list = slices.Clone(waiting.list)
	return t
}

// apply folds the next event of the agent.
func (t *tracedTurn) apply(e *event) {
	t.details.origin = e.origin
	t.details.Apply(e.n, e.Event)
	if e.Turn == t.details.ID {
		t.link(e)
		t.attempt(e)
	}
	if e.Turn == t.details.ID || e.Turn == "" {
		t.note(e)
	}
	if answer, ok := e.Event.(messages.ModelCompleted); ok {
		t.finishes[answer.Call] = answer.Finish
	}
}

// link records the trace context of an input that steers the turn.
func (t *tracedTurn) link(e *event) {
	in, ok := e.Event.(messages.InputAccepted)
	if span := e.trace.Span(); ok && in.Disposition == messages.Steered && span.IsValid() {
		t.links = append(t.links, SpanLink{TraceID: span.TraceID().String(), SpanID: span.SpanID().String()})
	}
}

// note records an event that the turn's span has as a moment: of the turn, or of the agent while it
// runs.
func (t *tracedTurn) note(e *event) {
	switch e.Event.(type) {
	case messages.ApprovalRequested, messages.ApprovalGranted, messages.ApprovalDenied, messages.ToolDenied, messages.ToolSkipped,
		messages.ToolFlagged, messages.ModelSwitched, messages.BudgetExhausted, messages.HookDecided, messages.AgentActivated:
	default:
		return
	}
	moment := SpanEvent{Name: "reprise." + e.EventType(), At: e.at}
	if e.Call != "" {
		moment.Attributes = []SpanAttribute{{Key: "gen_ai.tool.call.id", Text: string(e.Call)}}
	}
	t.events = append(t.events, moment)
}

// spans returns the turn's spans, its own first, then those below it as they began.
func (t *tracedTurn) spans(s *Spans) []Span {
	d, _ := t.details.Of(s.Agent)
	var below []Span
	for i := range d.Pauses {
		below = append(below, pauseSpan(&d, &d.Pauses[i], s.Content))
	}
	for i := range d.Done {
		step := &d.Done[i]
		for j := range step.Models {
			below = append(below, t.modelSpan(&d, step, &step.Models[j], s.Content))
		}
	}
	for i := range t.attempts {
		below = append(below, t.attempts[i].span(&d, s.Content))
	}
	slices.SortStableFunc(below, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return append([]Span{t.turnSpan(&d, s.Content)}, below...)
}

// turnSpan returns the turn's own span.
func (t *tracedTurn) turnSpan(d *TurnDetail, content bool) Span {
	s := d.spanOf(d.Span(d.Agent))
	s.does("invoke_agent", d.Agent.Kind)
	if in := d.Trace.Span(); in.IsValid() {
		s.Parent = in.SpanID().String()
	}
	s.Start, s.End, s.Events, s.Links = d.StartedAt, d.EndedAt, t.events, t.links
	s.say("gen_ai.agent.name", d.Agent.Kind)
	s.say("gen_ai.conversation.id", d.Agent.Full())
	if len(d.Done) > 0 && len(d.Done[0].Models) > 0 {
		s.asks(d.Done[0].Models[0].Model)
	}
	s.uses(d.Usage)
	s.say("reprise.turn.id", string(d.ID))
	s.say("reprise.turn.phase", string(d.Phase))
	s.say("reprise.turn.continues", string(d.Continues))
	if d.Phase == Failed {
		s.fail(d.Why())
	}
	if content {
		s.say("gen_ai.input.messages", spanMessages("user", askedParts(d.Asked), ""))
		s.say("gen_ai.output.messages", spanMessages("assistant", textParts(d.Output), d.Finish))
		s.Message = beginning(d.Message, MaxSpanText)
	}
	return s
}

// spanOf returns a span of the turn, with its ids.
func (d *TurnDetail) spanOf(t messages.TraceContext) Span {
	in := t.Span()
	return Span{
		TraceID: in.TraceID().String(), SpanID: in.SpanID().String(), State: t.State(), Flags: byte(in.TraceFlags()),
		Kind: SpanInternal, Turn: d.ID,
	}
}

// below returns a span below the turn's own.
func (d *TurnDetail) below(t messages.TraceContext) Span {
	s := d.spanOf(t)
	s.Parent = d.Span(d.Agent).Span().SpanID().String()
	return s
}

// does sets the span's operation, and the name that the conventions have for it.
func (s *Span) does(operation, about string) {
	s.Name = strings.TrimSuffix(operation+" "+about, " ")
	s.say("gen_ai.operation.name", operation)
}

// namedModel returns the provider and the name of a model that a definition names provider/model.
func namedModel(model string) (provider, name string) {
	if provider, name, found := strings.Cut(model, "/"); found {
		return provider, name
	}
	return "", model
}

// asks adds the model that is asked, named as in the definition: provider/model.
func (s *Span) asks(model string) {
	provider, name := namedModel(model)
	s.say("gen_ai.provider.name", provider)
	s.say("gen_ai.request.model", name)
}

// modelSpan returns the span of an attempt at a model call.
func (t *tracedTurn) modelSpan(d *TurnDetail, step *TurnStep, a *Attempt, content bool) Span {
	_, name := namedModel(a.Model)
	s := d.below(d.modelCallSpan(d.Agent, a.Call))
	s.does("chat", name)
	s.Kind, s.Start, s.End = SpanClient, a.StartedAt, a.EndedAt
	s.asks(a.Model)
	s.say("gen_ai.response.model", a.Answered)
	if finish := t.finishes[a.Call]; finish != "" {
		s.Attributes = append(s.Attributes, SpanAttribute{Key: "gen_ai.response.finish_reasons", Texts: []string{finish}})
	}
	s.uses(a.Usage)
	s.count("reprise.step", int64(a.Step))
	switch {
	case a.Lost:
		s.fail("lost")
	case a.Failed != "":
		s.fail(a.Failed)
	}
	if answered := !a.Lost && a.Failed == "" && !a.EndedAt.IsZero(); content {
		s.Message = beginning(a.Message, MaxSpanText)
		if answered {
			s.say("gen_ai.output.messages", spanMessages("assistant", itemParts(step.Items), t.finishes[a.Call]))
		}
	}
	return s
}

// pauseSpan returns the span of a time in which the turn waited for a person.
func pauseSpan(d *TurnDetail, p *TurnPause, content bool) Span {
	s := d.below(d.waitSpan(d.Agent, p.N))
	s.Name, s.Start, s.End = "wait "+p.Reason, p.At, p.Until
	s.say("reprise.wait.reason", p.Reason)
	if content {
		s.Message = beginning(p.Message, MaxSpanText)
	}
	return s
}
