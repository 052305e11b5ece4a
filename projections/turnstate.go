package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// TurnState is a turn with what decides about its next step.
type TurnState struct {
	Turn // its Inputs are those that a model has seen or is about to

	// Used counts against Limits, the turns it continues and its children included. Its Steps
	// are not kept: see Turn.Steps.
	Used Use
	// Below is what its children have reported.
	Below messages.Usage
	// Reserved is set aside for the model call under way, or about to be. Nil: nothing.
	Reserved *Use
	// Exceeded is the limit that allows no other model call, until it is raised or the turn
	// resumed. Nil: none.
	Exceeded *Exceeded

	// Model is the call that is awaited or waits for its next attempt.
	Model    *PendingModel
	Switched string // the model that a fallback chose; empty: the definition's
	// ToolChoice is forced until ToolUsed: a tool was asked for, in an answer that was not cut off.
	ToolChoice string
	ToolUsed   bool
	// Compacted reports that the history was compacted for the next model call, or that this
	// was tried.
	Compacted bool
	Fresh     []string // inputs that began the turn and no model call has seen
	// Withheld is what was new in its last request, from this event on, as a model has refused
	// that and it has failed. 0: no model has.
	Withheld messages.EventNumber
	// Before is the number of steps of the turns that it continues.
	Before int

	// Answer is the model's when it asks for nothing more, HookAnswer the one that a hook
	// ends the turn with.
	Answer     *Output
	HookAnswer *string
	Again      string   // the hook that at the turn's end asked for a model call that is not made yet
	Held       *Hold    // the hook that wants a person, until the turn is resumed; nil: none
	Hooked     []string // hooks that are not asked again in this step, as point/name

	// Calls are the tool calls of the newest step, in the model's order.
	Calls []CallState
	// CallIDs are the ids of all tool calls of the turn and those it continues, Done those
	// that may have had an effect that must not come twice, and Children how many were given
	// to other agents.
	CallIDs  []messages.CallID
	Done     []DoneCall
	Children int
	// Callers are those that the turn works for, the root's first. Nil: none.
	Callers []messages.Caller
}

// DoneCall is a call, with OnUnknown Pause or Rerun, that may have had its effect.
type DoneCall struct {
	ID              messages.CallID
	Tool, Arguments string
}

// ended returns what is kept of a turn that has ended.
func (t *TurnState) ended() *TurnState {
	e := &TurnState{Turn: t.Turn}
	if t.Phase == Failed {
		e.Used, e.Withheld, e.Model, e.ToolChoice, e.ToolUsed = t.Used, t.Withheld, t.Model, t.ToolChoice, t.ToolUsed
		e.CallIDs, e.Done, e.Children, e.Callers = t.CallIDs, t.Done, t.Children, t.Callers
	}
	return e
}

// continues takes over what holds for all turns that continue one another.
func (t *TurnState) continues(e *TurnState) {
	t.Used, t.ToolUsed = e.Used, e.ToolUsed
	t.CallIDs, t.Done, t.Children, t.Callers = slices.Clip(e.CallIDs), slices.Clip(e.Done), e.Children, e.Callers
}

// apply folds an event of the turn.
func (t *TurnState) apply(e *event) {
	paused := t.Paused()
	if t.Turn.apply(e); t.Phase == Running {
		t.resumed(paused)
	}
	t.applyCall(e)
	if t.Model != nil {
		t.Model.apply(e.Event)
	}
	switch ev := e.Event.(type) {
	case messages.TurnStarted:
		t.ToolChoice, t.Fresh, t.Before = ev.ToolChoice, ev.Inputs, ev.Steps
	case messages.TurnFailed:
		t.Withheld = ev.Withheld
	case messages.HookDecided:
		t.hookDecided(ev)
	case messages.ModelRequested:
		t.modelRequested(ev)
	case messages.ModelSwitched:
		t.Switched = ev.To
	case messages.ModelCompleted:
		t.Model, t.Answer = nil, answerOf(ev)
		t.ToolUsed = t.ToolUsed || asksForTool(ev)
	case messages.BudgetReserved:
		t.Reserved = &Use{Tokens: ev.Tokens, Cost: ev.Cost}
	case messages.BudgetSettled:
		t.Reserved = nil
	case messages.BudgetExhausted:
		t.Exceeded = &Exceeded{ev.Scope, ev.Limit, ev.Message}
	case messages.ChildSpawned:
		t.Children++
	default:
		switch end := childEndOf(ev); {
		case end.status == ChildCompleted || end.status == ChildFailed:
			t.Below = t.Below.Add(end.used.Usage)
		case e.Is(messages.JoinsTurn): // an input that steers it
			t.Hooked = nil // none of them was asked about it
		case e.Is(messages.Summarizes):
			t.Compacted = messages.KindOf(ev) != string(messages.ModelFailureInterrupted)
		}
	}
}

// resumed folds the end of a pause, with its reason: a limit or a hook is passed only if the
// turn was paused for it.
func (t *TurnState) resumed(paused string) {
	switch paused {
	case PausedHook:
		t.Held = nil
	case "", PausedApproval, PausedUnknown, PausedChild, PausedFork, PausedImport:
	default:
		t.Exceeded = nil
	}
}

func (t *TurnState) modelRequested(ev messages.ModelRequested) {
	m := new(PendingModel)
	if t.Model != nil && ev.Attempt > 1 {
		*m = *t.Model
	}
	m.ID, m.Model, m.Attempt, m.ToolChoice, m.Phase = ev.Call, ev.Model, ev.Attempt, ev.ToolChoice, ModelUnderWay
	t.Model, t.Fresh, t.Calls = m, nil, nil
	t.Answer, t.Again, t.Hooked, t.Compacted = nil, "", nil, false
}

// applyCall folds what concerns the tool calls.
func (t *TurnState) applyCall(e *event) {
	if ev, ok := e.Event.(messages.ToolRequested); ok && ev.Call != "" && t.Call(ev.Call) == nil {
		t.Calls = append(t.Calls, CallState{ToolCall: ToolCall{Turn: t.ID, ID: ev.Call, Outcome: CallRequested}})
		t.CallIDs = append(t.CallIDs, ev.Call)
	}
	c := t.Call(e.Call)
	if c == nil {
		return
	}
	switch c.apply(e); {
	case c.Started == e.n && RepeatHurts(c.OnUnknown):
		t.Done = append(t.Done, DoneCall{c.ID, c.Tool, c.Arguments})
	case c.Ended == e.n && c.Kind.NoEffect():
		t.Done = slices.DeleteFunc(slices.Clone(t.Done), func(d DoneCall) bool { return d.ID == c.ID })
	}
}

// RepeatHurts reports whether a second call with the same arguments may have a second
// effect that is not wanted: such calls are flagged.
func RepeatHurts(u messages.OnUnknown) bool { return u == messages.Pause || u == messages.Rerun }

// Asked reports whether a model was asked in this turn.
func (t *TurnState) Asked() bool { return t.Steps > t.Before }

// Total returns what the turn and its children have used, as far as that is known.
func (t *TurnState) Total() messages.Usage { return t.Usage.Add(t.Below) }

// Exhausted returns the limit that was reached; empty: none.
func (t *TurnState) Exhausted() messages.Limit {
	if t.Exceeded == nil {
		return ""
	}
	return t.Exceeded.Limit
}

// Call returns the call of the newest step with this id; nil if there is none.
func (t *TurnState) Call(id messages.CallID) *CallState {
	if id == "" {
		return nil
	}
	return firstOf(t.Calls, func(c *CallState) bool { return c.ID == id })
}

// Waiting returns the calls that only a person can decide, or a call below them.
func (t *TurnState) Waiting() []messages.CallID {
	var ids []messages.CallID
	for i := range t.Calls {
		if c := &t.Calls[i]; c.needs() != "" || c.WaitsBelow() {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Count returns how many calls have the outcome.
func (t *TurnState) Count(outcome Outcome) int {
	n := 0
	for i := range t.Calls {
		if t.Calls[i].Outcome == outcome {
			n++
		}
	}
	return n
}

// UnderWay returns how many calls run and wait for no person.
func (t *TurnState) UnderWay() int {
	n := t.Count(CallRunning)
	for i := range t.Calls {
		if t.Calls[i].WaitsBelow() {
			n--
		}
	}
	return n
}
