package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// TurnDetail is one turn as a person thinks of it: what was asked, what was done step by step, and
// the answer. It is the object of `reprise turn -o json`, a line of `reprise turns` with more; its
// names are promises.
type TurnDetail struct {
	Agent messages.AgentID `json:"agent"`
	Turn
	// Asked are the turn's inputs, those that steered it included.
	Asked []TurnInput `json:"asked"`
	// Done are its steps, oldest first.
	Done []TurnStep `json:"done"`
	// Pauses are the times in which it waited for a person.
	Pauses []TurnPause `json:"pauses,omitempty"`
	// Output is the answer.
	Output string `json:"output,omitempty"`
	// OutputBlob is the reference to an answer that is too large for an event.
	OutputBlob *messages.Blob `json:"output_blob,omitempty"`
}

// TurnStep is a model call with its attempts, and the tool calls that it asked for.
type TurnStep struct {
	Step int `json:"step"`
	// Models are the attempts at the model call.
	Models []Attempt `json:"models,omitempty"`
	// Items are the items of the model's answer, without its tool calls.
	Items []messages.Item `json:"items,omitempty"`
	// Tools are the calls that its answer asks for.
	Tools []Effect `json:"tools,omitempty"`
}

// Attempt is one attempt at a model call.
type Attempt struct {
	ModelCall
	// StartedAt is when it was requested.
	StartedAt time.Time `json:"started_at,omitzero"`
	// EndedAt is when it was answered, failed or lost. Zero: it has not ended.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Message is why it failed.
	Message string `json:"message,omitempty"`
}

// TurnPause is a time in which a turn waited for a person.
type TurnPause struct {
	// N is the number of the turn.paused.
	N messages.EventNumber `json:"n"`
	// At is the time of that event.
	At time.Time `json:"at,omitzero"`
	// Reason is why, as in turn.paused.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Calls are the calls that waited.
	Calls []messages.CallID `json:"calls,omitempty"`
	// Until is when the turn continued or ended. Zero: it still waits.
	Until time.Time `json:"until,omitzero"`
	// Person is the person whose command ended the pause. Nil: no person is named.
	Person *messages.Person `json:"person,omitempty"`
}

// TurnDetails folds one turn of an agent. The zero value is without a turn.
type TurnDetails struct {
	// ID is the turn that is wanted.
	ID messages.TurnID

	origin
	inputs  acceptedInputs
	turns   Turns
	effects Effects
	usage   Usage
	detail  TurnDetail
	asked   int // inputs of the turn that were looked for
	began   map[messages.CallID]time.Time
	models  []Attempt // those of usage
}

// Apply folds event number n.
func (t *TurnDetails) Apply(n messages.EventNumber, ev messages.Event) {
	e := t.event(n, ev)
	t.inputs.accept(e)
	if e.Turn == t.ID && e.Turn != "" || e.Is(messages.EndsAgent|messages.ClearsAgent) {
		t.apply(e)
	}
	if t.inputs.drop(e); e.Is(messages.EndsAgent) {
		*t = TurnDetails{ID: t.ID, origin: t.origin}
	}
}

// apply folds an event of the turn.
func (t *TurnDetails) apply(e *event) {
	t.turns.origin, t.effects.origin = e.origin, e.origin
	for _, v := range [...]View{&t.turns, &t.effects, &t.usage} {
		v.Apply(e.n, e.Event)
	}
	if len(t.turns.turns) == 0 {
		return
	}
	d := &t.detail
	d.Turn = t.turns.turns[0]
	d.Asked = append(d.Asked, t.inputs.of(d.Inputs[t.asked:])...)
	t.asked = len(d.Inputs)
	if output, ok := turnOutput(e.Event); ok {
		d.Output, d.OutputBlob = output.Text, output.Blob
	}
	t.pause(e)
	t.model(e)
}

// pause folds the beginning or end of a pause.
func (t *TurnDetails) pause(e *event) {
	d := &t.detail
	if last := len(d.Pauses) - 1; last >= 0 && d.Pauses[last].Until.IsZero() && (d.Paused() == "" || e.Is(messages.HoldsTurn)) {
		d.Pauses[last].Until, d.Pauses[last].Person = e.at, e.by
	}
	if d.Paused() != "" && e.Is(messages.HoldsTurn) {
		d.Pauses = append(d.Pauses, TurnPause{N: e.n, At: e.at, Reason: d.Reason, Message: d.Message, Calls: slices.Clone(d.Waiting)})
	}
}

// model folds the beginning or end of an attempt at a model call, and its answer.
func (t *TurnDetails) model(e *event) {
	if e.Is(messages.BeginsModelCall) {
		if t.began == nil {
			t.began = make(map[messages.CallID]time.Time)
		}
		t.began[e.Call] = e.at
	}
	for _, c := range t.usage.calls[len(t.models):] {
		a := Attempt{ModelCall: c, StartedAt: t.began[c.Call], EndedAt: e.at}
		if failed, ok := e.Event.(messages.ModelFailed); ok {
			a.Message = failed.Message
		}
		t.models = append(t.models, a)
	}
	if answer, ok := e.Event.(messages.ModelCompleted); ok {
		step := t.detail.step(answer.Step)
		for _, item := range answer.Items {
			if item.Type != messages.ItemCall {
				step.Items = append(step.Items, item)
			}
		}
	}
}

// step returns the step with this number, valid until another one is added.
func (d *TurnDetail) step(number int) *TurnStep {
	if s := lastOf(d.Done, func(s *TurnStep) bool { return s.Step == number }); s != nil {
		return s
	}
	d.Done = append(d.Done, TurnStep{Step: number})
	return &d.Done[len(d.Done)-1]
}

// Of returns the turn as one of agent a; false if the agent has no such turn.
func (t *TurnDetails) Of(a messages.AgentID) (TurnDetail, bool) {
	d := t.detail
	d.Agent, d.Asked, d.Done = a, append([]TurnInput{}, d.Asked...), append([]TurnStep{}, d.Done...)
	for _, m := range t.models {
		s := d.step(m.Step)
		s.Models = append(s.Models, m)
	}
	for _, asked := range t.usage.asked {
		s := d.step(asked.Step)
		s.Models = append(s.Models, Attempt{ModelCall: asked, StartedAt: t.began[asked.Call]})
	}
	for _, c := range t.effects.List(a) {
		s := d.step(c.Step)
		s.Tools = append(s.Tools, c)
	}
	slices.SortStableFunc(d.Done, func(a, b TurnStep) int { return a.Step - b.Step })
	return d, d.ID != ""
}
