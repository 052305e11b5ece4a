package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Phase is what a turn is doing, or how it ended.
type Phase string

// The phases of a turn. Completed, Failed and Aborted are final.
const (
	Running   Phase = "running"   // it runs
	Paused    Phase = "paused"    // it waits for a person
	Completed Phase = "completed" // it has an answer
	Failed    Phase = "failed"    // it ended without one
	Aborted   Phase = "aborted"   // a person or the parent ended it
)

// Turn is one turn as of the newest event.
type Turn struct {
	ID     messages.TurnID `json:"turn"`
	Inputs []string        `json:"inputs,omitempty"`
	// Phase is what the turn is doing, or how it ended.
	Phase Phase `json:"phase"`
	// Reason is why it is paused, has failed or was aborted.
	Reason string `json:"reason,omitempty"`
	// Message is the same for a person; of a paused turn, with what to do.
	Message string `json:"message,omitempty"`
	// Kind is why the model failed, if Reason is `model`.
	Kind messages.ModelFailure `json:"kind,omitempty"`
	// Status is the HTTP status of that failure. 0: none.
	Status int `json:"status,omitempty"`
	// Finish is why the last answer of the model ended, as in turn.completed.
	Finish string `json:"finish,omitempty"`
	// By is the command that aborted it.
	By string `json:"by,omitempty"`
	// Waiting are the calls that a paused turn waits for.
	Waiting []messages.CallID `json:"calls,omitempty"`
	// Continues is the failed turn that this one continues.
	Continues messages.TurnID `json:"continues,omitempty"`
	// Started is the number of its turn.started.
	Started messages.EventNumber `json:"started"`
	// StartedAt is the time of that event.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Ended is the number of its terminal event. 0: it has not ended.
	Ended messages.EventNumber `json:"ended,omitempty"`
	// EndedAt is the time of that event.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Steps is the number of the newest model call, those of the turn that it
	// continues included.
	Steps int `json:"steps"`
	// Limits are its limits. Zero values are no limit.
	Limits messages.Limits `json:"limits,omitzero"`
	// Usage is what the turn's own model calls used, failed ones included.
	Usage messages.Usage `json:"usage"`
	// Cost is what these calls cost, in billionths of the unit of the price table.
	Cost messages.Cost `json:"cost_nanos,omitempty"`
	// Cleared reports whether the agent was cleared since: its history and state have nothing
	// of the turn.
	Cleared bool `json:"cleared,omitempty"`
	// Trace is the W3C trace context that it belongs to. Empty: it begins a trace.
	Trace messages.TraceContext `json:"trace,omitempty"`
}

// Turns lists an agent's turns, those before it was cleared included. The zero
// value has none.
type Turns struct {
	turns []Turn // as they started
	origin
}

// Apply folds event number n. Events of a turn that never started change nothing, and the
// first terminal event of a turn is final.
func (t *Turns) Apply(n messages.EventNumber, ev messages.Event) {
	e := t.event(n, ev)
	turn := t.turn(e.Turn)
	switch {
	case e.Is(messages.EndsAgent):
		t.turns = nil
	case e.Is(messages.ClearsAgent):
		for i := range t.turns {
			t.turns[i].Cleared = true
		}
	case turn == nil && e.Is(messages.BeginsTurn):
		t.turns = append(t.turns, Turn{ID: e.Turn})
		t.turns[len(t.turns)-1].apply(e)
	case turn != nil && !e.Is(messages.BeginsTurn):
		turn.apply(e)
	}
}

// turn returns the turn with this id; nil if there is none, or id is empty. It is nearly always the
// newest, and those that started before the event that id names are not searched.
func (t *Turns) turn(id messages.TurnID) *Turn {
	started := id.Start()
	for i := len(t.turns) - 1; i >= 0 && id != ""; i-- {
		switch turn := &t.turns[i]; {
		case turn.ID == id:
			return turn
		case turn.Started < started:
			return nil
		}
	}
	return nil
}

// Why a turn is paused when it is not for a limit.
const (
	PausedApproval = "approval"
	PausedUnknown  = "tool_unknown"
	PausedHook     = "hook"
	PausedChild    = "child"  // its children wait for a person
	PausedFork     = "fork"   // its agent is a fork, and its parent had begun it
	PausedImport   = "import" // it had begun where its agent was exported
)

// Paused returns why the turn waits for a person, as in turn.paused. Empty: it does not.
func (t *Turn) Paused() string {
	if t.Phase == Paused {
		return t.Reason
	}
	return ""
}

// Why returns the kind of the model's failure if it is a token, else Reason. A provider may return
// any text as the kind, and the headers of a frame take tokens only.
func (t *Turn) Why() string {
	if t.Kind != "" && messages.ValidateToken("kind", string(t.Kind)) == nil {
		return string(t.Kind)
	}
	return t.Reason
}

// apply folds an event of the turn. Its end is final, but for what is reported late.
func (t *Turn) apply(e *event) {
	if e.Is(messages.EndsModelCall) {
		usage, cost, _ := UsedBy(e.Event)
		t.Usage, t.Cost = t.Usage.Add(usage), t.Cost+cost
	}
	if t.Ended != 0 {
		return
	}
	switch ev := e.Event.(type) {
	case messages.TurnStarted:
		t.Phase, t.Inputs, t.Continues, t.Started, t.StartedAt = Running, slices.Clone(ev.Inputs), ev.Continues, e.n, e.at
		t.Trace = ev.Trace
		t.Steps, t.Limits = ev.Steps, ev.Limits.Override(messages.Limits{MaxSteps: ev.MaxSteps})
	case messages.TurnPaused:
		t.phase(Turn{Phase: Paused, Reason: ev.Reason, Message: ev.Message, Waiting: ev.Calls})
	case messages.TurnResumed:
		t.phase(Turn{Phase: Running})
		t.Limits = t.Limits.Override(messages.Limits{MaxSteps: ev.MaxSteps})
	case messages.BudgetRaised:
		if ev.Scope != messages.ScopeAgent {
			t.Limits = t.Limits.Override(ev.Limits)
		}
	case messages.ModelRequested:
		t.Steps = max(t.Steps, ev.Step)
		t.take(ev.Inputs)
	case messages.TurnCompleted:
		t.end(e, ev.Inputs, Turn{Phase: Completed, Finish: ev.Finish, Steps: ev.Steps})
	case messages.TurnFailed:
		t.end(e, ev.Inputs, Turn{Phase: Failed, Reason: ev.Reason, Kind: ev.Kind, Status: ev.Status, Message: ev.Message, Steps: ev.Steps})
	case messages.TurnAborted:
		t.end(e, ev.Inputs, Turn{Phase: Aborted, Reason: ev.Reason, By: ev.By, Steps: ev.Steps})
	}
}

// EndedBy returns the turns that a frame ends, with what their terminal events hold.
func EndedBy(f *messages.Frame) (ended []Turn) {
	var o origin
	o.InFrame(f)
	for i, ev := range f.Events {
		if e := o.event(f.First+messages.EventNumber(i), ev); e.Is(messages.EndsTurn) {
			t := Turn{ID: e.Turn}
			t.apply(e)
			ended = append(ended, t)
		}
	}
	return ended
}

// phase sets the turn's phase to that of p, and what belongs to it.
func (t *Turn) phase(p Turn) {
	t.Phase, t.Reason, t.Message, t.By = p.Phase, p.Reason, p.Message, p.By
	t.Waiting = slices.Clone(p.Waiting)
}

func (t *Turn) end(e *event, inputs []string, how Turn) {
	t.phase(how)
	t.take(inputs)
	t.Steps, t.Ended, t.EndedAt = how.Steps, e.n, e.at
	t.Kind, t.Status, t.Finish = how.Kind, how.Status, how.Finish
}

// take adds inputs that have steered the turn.
func (t *Turn) take(inputs []string) {
	for _, id := range inputs {
		if !slices.Contains(t.Inputs, id) {
			t.Inputs = append(t.Inputs, id)
		}
	}
}

// List returns every turn, oldest first.
func (t *Turns) List() []Turn {
	list := slices.Clone(t.turns)
	for i := range list {
		list[i].Inputs, list[i].Waiting = slices.Clone(list[i].Inputs), slices.Clone(list[i].Waiting)
	}
	return list
}
