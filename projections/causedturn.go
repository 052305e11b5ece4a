package projections

import (
	"encoding/json"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// causedTurn is a turn, to explain its events. Of a turn that has ended only its ends and its
// inputs are kept.
type causedTurn struct {
	id        messages.TurnID
	started   Cause
	inputs    []*causedInput
	continues *causedTurn
	models    []*causedModel
	calls     []*causedCall
	results   []Cause // that no model call has included yet
	newest    Cause   // the newest event that may explain a later one; of a turn that has ended, its end
}

// causedInput is an accepted input.
type causedInput struct {
	Cause
	id      string
	content messages.Digest
	// set and fired are those of the timer that brought it. Zero: none did.
	set, fired Cause
	parent     *messages.Parent
	// resends is the newest earlier input of the same content. Nil: none has it.
	resends *causedInput
}

// causedModel is an attempt at a model call.
type causedModel struct {
	begun, ended Cause
	id           messages.CallID
	step         int
	answered     bool // with an answer that may hold calls
	saw          []Cause
}

// accept folds an accepted input.
func (c *Causes) accept(e *event, ev messages.InputAccepted) {
	in := &causedInput{Cause: c.line(CauseInput, e), id: ev.Input, parent: ev.Parent}
	if c.fired.input == ev.Input {
		in.set, in.fired = c.fired.set, c.fired.fired
	}
	if in.fired.N == 0 && in.parent == nil && len(ev.Content) > 0 { // what repeats by itself is not sent again
		raw, _ := json.Marshal(ev.Content) // it came as JSON
		in.content = messages.DigestOf(raw)
		in.resends = c.contents[in.content]
		put(&c.contents, in.content, in)
	}
	put(&c.inputs, ev.Input, in)
	if t := c.turns[ev.Turn]; t != nil {
		t.join(in)
	}
}

// put sets m[k], and makes the map if there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}

// start folds the start of a turn.
func (c *Causes) start(e *event, ev messages.TurnStarted) {
	t := &causedTurn{id: ev.Turn, started: c.line(CauseStarted, e), continues: c.turns[ev.Continues]}
	if t.continues != nil {
		t.results, t.continues.results = t.continues.results, nil
	}
	for _, id := range ev.Inputs {
		if in := c.inputs[id]; in != nil {
			t.join(in)
		}
	}
	put(&c.turns, ev.Turn, t)
}

func (t *causedTurn) join(in *causedInput) {
	if !slices.Contains(t.inputs, in) {
		t.inputs = append(t.inputs, in)
	}
}

// begin folds the beginning of an attempt at a model call. It includes the results of the calls
// since the one before, and each attempt of a step includes the same. A summary has no step, and
// is made of older results.
func (t *causedTurn) begin(l Cause, e *event) {
	m := &causedModel{begun: l, id: e.Call, step: messages.StepOf(e.Event)}
	if asked, ok := e.Event.(messages.CompactionRequested); ok {
		if asked.Attempt <= 1 { // those before are of other summaries
			t.models = slices.DeleteFunc(t.models, func(o *causedModel) bool { return o.step == 0 })
		}
		t.models = append(t.models, m)
		return
	}
	if last := lastOf(t.models, func(o **causedModel) bool { return (*o).step == m.step }); last != nil {
		m.saw = (*last).saw
	}
	if len(t.results) > 0 {
		m.saw, t.results = t.results, nil
	}
	t.models = append(t.models, m)
}

// answer folds the outcome of an attempt at a model call.
func (t *causedTurn) answer(l Cause, e *event) {
	if m := t.model(e.Call); m != nil {
		m.ended, m.answered = l, !e.Is(messages.Failed|messages.Lost|messages.Summarizes)
	}
}

// model returns the newest attempt with this id; nil if there is none.
func (t *causedTurn) model(id messages.CallID) *causedModel {
	if id == "" {
		return nil
	}
	return deref(lastOf(t.models, func(m **causedModel) bool { return (*m).id == id }))
}

// newestAttempt returns the newest attempt at a model call; nil if there is none.
func (t *causedTurn) newestAttempt() *causedModel {
	return deref(lastOf(t.models, func(**causedModel) bool { return true }))
}

// newestAnswer returns the newest attempt with an answer that may hold calls; nil if there is none.
func (t *causedTurn) newestAnswer() *causedModel {
	return deref(lastOf(t.models, func(m **causedModel) bool { return (*m).answered }))
}

func deref[E any](p **E) *E {
	if p == nil {
		return nil
	}
	return *p
}

// call returns the newest call with this id; nil if there is none.
func (t *causedTurn) call(id messages.CallID) *causedCall {
	if id == "" {
		return nil
	}
	return deref(lastOf(t.calls, func(c **causedCall) bool { return (*c).ID == id }))
}

// continuesTurn reports whether the turn continues that one, directly or not.
func (t *causedTurn) continuesTurn(of *causedTurn) bool {
	for up := t.continues; up != nil; up = up.continues {
		if up == of {
			return true
		}
	}
	return false
}

// end folds the end of the turn, and returns its calls. Results of a failed turn are kept for one that
// continues it.
func (t *causedTurn) end(e *event) []madeCall {
	made := make([]madeCall, len(t.calls))
	for i, call := range t.calls {
		if !call.Outcome.Final() {
			call.giveUp(e)
		}
		made[i] = call.made()
	}
	if t.models, t.calls = nil, nil; !e.Is(messages.Failed) {
		t.results = nil
	}
	return made
}
