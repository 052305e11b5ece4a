package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Work is what an agent has to do, does, and has used: its inputs, its timers, its turn, its
// messages to other agents. The zero value is an agent with nothing to do.
type Work struct {
	Inputs Inputs
	Timers Timers
	Outbox Outbox
	// Turn is the running or paused turn; nil when idle.
	Turn *TurnState
	// Ended is the newest turn that ended, with what a turn that continues it needs if it has
	// failed; nil before the first, and after a clear.
	Ended *TurnState
	// Used is what all turns together have used.
	Used Use
	// Overrides are limits of the agent that a person has set: they hold in place of
	// the definition's.
	Overrides messages.Limits
	// Summary is the request for a summary of the older part of the history that is under way;
	// nil: none is.
	Summary *messages.CompactionRequested

	origin
}

// Apply folds event number n.
func (w *Work) Apply(n messages.EventNumber, ev messages.Event) {
	e := w.event(n, ev)
	switch ev := ev.(type) {
	case messages.TurnStarted:
		w.start(ev)
	case messages.BudgetRaised:
		w.overridden(ev)
	case messages.ModelRequested:
		if ev.Attempt <= 1 {
			w.Used.Steps++
		}
	case messages.CompactionRequested:
		w.Summary = &ev
	default:
		w.drop(e)
	}
	w.Inputs.apply(e)
	w.Timers.apply(e)
	w.Outbox.apply(e, w.Turn)
	use := useOf(e)
	w.Used = w.Used.Add(use)
	if t := w.Turn; t != nil && t.ID == e.Turn {
		t.Used = t.Used.Add(use)
		if t.apply(e); t.Ended != 0 {
			w.Ended, w.Turn = t.ended(), nil
		}
	}
	w.noteWaits(e.n)
}

// forked folds the beginning of a fork or of an imported agent: it works for no other agent.
func (w *Work) forked() {
	for _, t := range [...]*TurnState{w.Turn, w.Ended} {
		if t != nil {
			t.Callers = nil
		}
	}
}

// drop folds the end of what was: of the summary that is being made, of what a clear drops, or
// of all.
func (w *Work) drop(e *event) {
	switch {
	case e.Is(messages.EndsAgent):
		*w = Work{origin: w.origin}
	case e.Is(messages.BeginsFork):
		w.forked()
	case e.Is(messages.ClearsAgent):
		w.Inputs, w.Timers, w.Ended = Inputs{}, Timers{}, nil
	case e.Is(messages.Summarizes) && w.Summary != nil && w.Summary.Call == e.Call:
		w.Summary = nil
	}
}

func (w *Work) start(ev messages.TurnStarted) {
	t := &TurnState{Turn: Turn{ID: ev.Turn}}
	if e := w.Ended; ev.Continues != "" && e != nil && e.ID == ev.Continues {
		t.continues(e)
	} else {
		t.Callers = w.Outbox.callers(ev.Inputs)
	}
	w.Turn = t
}

// turn returns the running turn, or the newest that ended, if it is the one with this id; the
// zero value: neither is.
func (w *Work) turn(id messages.TurnID) Turn {
	for _, t := range [...]*TurnState{w.Turn, w.Ended} {
		if t != nil && t.ID == id {
			return t.Turn
		}
	}
	return Turn{}
}

// overridden folds limits that a person has set: one of them that was reached no longer holds the turn.
func (w *Work) overridden(ev messages.BudgetRaised) {
	if ev.Scope == messages.ScopeAgent {
		w.Overrides = w.Overrides.Override(ev.Limits)
	}
	if t := w.Turn; t != nil && ev.Limits.Sets(t.Exhausted()) {
		t.Exceeded = nil
	}
}

// TurnInputs returns the ids of the inputs that would end with the turn now, those that steer
// it included.
func (w *Work) TurnInputs() []string {
	if w.Turn == nil {
		return nil
	}
	return append(slices.Clip(w.Turn.Inputs), w.Inputs.SteeredIDs()...)
}

// Waiting is a call that a person must decide.
type Waiting struct {
	// Agent is the address of the descendant whose call it is. Empty: it is a call of the agent itself.
	Agent string          `json:"agent,omitempty"`
	Call  messages.CallID `json:"call"`
	Turn  messages.TurnID `json:"turn"`
	Tool  string          `json:"tool,omitempty"`
	// Kind is what it waits for. A turn of a child that is to be resumed, `paused`, has no call.
	Kind messages.WaitKind `json:"kind,omitempty"`
	// Reason is why it waits. Empty: none is known.
	Reason string `json:"reason"`
	// Arguments are those that it ran with, or would run with.
	Arguments string `json:"arguments,omitempty"`
	// ArgsHash is the SHA-256 of the arguments of a call that waits for approval, in hex.
	ArgsHash string `json:"args_hash,omitempty"`
	// Flagged is the earlier call that this one repeats. Empty: none is known.
	Flagged messages.CallID `json:"flagged,omitempty"`
	// ExpiresAt is when an approval is denied without a decision. Zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// N is the number of the event since which it waits.
	N messages.EventNumber `json:"n,omitempty"`
	// At is the time of that event.
	At time.Time `json:"at,omitzero"`
}

// Waiting returns the calls that a person must decide, oldest first.
func (w *Work) Waiting() (list []Waiting) {
	if w.Turn == nil {
		return nil
	}
	for i := range w.Turn.Calls {
		switch c := &w.Turn.Calls[i]; {
		case c.Waits() || c.Outcome == CallUnknown:
			list = append(list, c.waiting())
		case c.ListsBelow():
			list = c.waitingBelow(list)
		}
	}
	slices.SortStableFunc(list, func(a, b Waiting) int { return int(a.N) - int(b.N) })
	return list
}

func (c *CallState) waiting() Waiting {
	return Waiting{
		Call: c.ID, Turn: c.Turn, Tool: c.Tool, Kind: c.needs(), Reason: c.Reason, Arguments: c.Arguments, ArgsHash: c.ArgsHash,
		Flagged: c.Flagged, ExpiresAt: c.ExpiresAt, N: c.Since, At: c.SinceAt,
	}
}

func (c *CallState) waitingBelow(list []Waiting) []Waiting {
	for _, b := range c.Child.Waiting {
		arguments := b.Arguments
		if b.Cut {
			arguments += " [cut; agent " + b.Agent + " has them whole]"
		}
		w := Waiting{
			Agent: b.Agent, Turn: b.Turn, Call: b.Call, Tool: b.Tool, Kind: b.Kind, Reason: b.Reason,
			Arguments: arguments, ArgsHash: b.ArgsHash, N: c.Since, At: c.SinceAt,
		}
		if b.ExpiresAt != nil {
			w.ExpiresAt = *b.ExpiresAt
		}
		list = append(list, w)
	}
	return list
}

// More reports whether more calls wait below the agent than Waiting has: a child lists
// at most messages.MaxWaits.
func (w *Work) More() bool {
	return w.Turn != nil && firstOf(w.Turn.Calls, func(c *CallState) bool { return c.ListsBelow() && c.Child.More }) != nil
}

// Approvals returns the calls of agent a, and of those below it, that wait for
// approval, oldest first.
func (w *Work) Approvals(a messages.AgentID) []messages.Approval {
	var list []messages.Approval
	for _, c := range w.Waiting() {
		if c.Kind == messages.WaitApproval {
			whose := a
			if id, err := messages.ParseAgentID(c.Agent); err == nil {
				whose = id
			}
			list = append(list, messages.Approval{
				Agent: whose, Turn: c.Turn, Call: c.Call, Tool: c.Tool, Arguments: c.Arguments, ArgsHash: c.ArgsHash,
				Reason: c.Reason, Flagged: c.Flagged, ExpiresAt: c.ExpiresAt, N: c.N, At: c.At,
			})
		}
	}
	return list
}
