package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// The kinds of Waiting.
const (
	WaitsForApproval = "approval" // may it run: approve or deny
	WaitsForOutcome  = "unknown"  // what became of it: decide
	WaitsPaused      = "paused"   // a child's turn that is to be resumed; it has no call
)

// Waiting is a call that a person must settle.
type Waiting struct {
	// Agent is whose call it is, where it is a child's or of one below. Empty: the
	// agent's own.
	Agent string          `json:"agent,omitempty"`
	Call  messages.CallID `json:"call"`
	Turn  messages.TurnID `json:"turn"`
	Tool  string          `json:"tool,omitempty"`
	// Kind is approval or unknown, or paused for a child.
	Kind string `json:"kind,omitempty"`
	// Reason is why it waits. Empty: nobody said.
	Reason string `json:"reason"`
	// Arguments are those it runs with, or would.
	Arguments string `json:"arguments,omitempty"`
	// ArgsHash names the arguments in a decision about an approval.
	ArgsHash string `json:"args_hash,omitempty"`
	// Flagged is the earlier call that this one repeats. Empty: none is known.
	Flagged messages.CallID `json:"flagged,omitempty"`
	// ExpiresAt is when an approval is denied without a decision. Zero: never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// N is the event since which it waits, At when that was recorded.
	N  messages.EventNumber `json:"n,omitempty"`
	At time.Time            `json:"at,omitzero"`

	// by is the agent's own call below which it waits, of turn in; more says that
	// more waits there than is listed.
	by   messages.CallID
	in   messages.TurnID
	more bool
}

// Queue is what an agent has yet to begin and what it waits for: accepted
// inputs that no model has seen, and calls that only a person can settle. The
// zero value is an agent with nothing to do.
type Queue struct {
	at      time.Time
	Inputs  Inputs
	waiting []Waiting
	calls   []unsettledCall
}

// unsettledCall is a call without an outcome.
type unsettledCall struct {
	turn      messages.TurnID
	call      messages.CallID
	tool      string
	arguments string
	flagged   messages.CallID
}

// At says when the events that are applied next were recorded.
func (q *Queue) At(at time.Time) { q.at = at.UTC() }

// Apply folds event number n.
func (q *Queue) Apply(n messages.EventNumber, ev messages.Event) {
	q.Inputs.Apply(n, ev)
	switch ev := ev.(type) {
	case messages.AgentCleared, messages.AgentDeleted:
		*q = Queue{at: q.at}
	case messages.ChildWaiting:
		q.waitBelow(n, ev)
	case messages.ChildResumed:
		q.waitsBelowNoMore(ev.Turn, ev.Call)
	default:
		if _, ends := messages.Ended(ev); ends {
			q.ended(messages.TurnOf(ev))
		} else {
			q.applyCall(n, ev)
		}
	}
}

// applyCall folds what is said of a call.
func (q *Queue) applyCall(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ToolRequested:
		*q.call(ev.Turn, ev.Call) = unsettledCall{turn: ev.Turn, call: ev.Call, tool: ev.Tool, arguments: ev.Arguments}
	case messages.ToolFlagged:
		q.call(ev.Turn, ev.Call).flagged = ev.Of
		for i := range q.waiting {
			if w := &q.waiting[i]; w.by == "" && w.Turn == ev.Turn && w.Call == ev.Call {
				w.Flagged = ev.Of
			}
		}
	case messages.HookDecided:
		if ev.Call != "" && ev.Arguments != "" {
			q.call(ev.Turn, ev.Call).arguments = ev.Arguments
		}
	case messages.ToolStarted:
		q.waitsNoMore(ev.Turn, ev.Call)
		c := q.call(ev.Turn, ev.Call)
		if c.tool = ev.Tool; ev.Arguments != "" {
			c.arguments = ev.Arguments
		}
	case messages.ToolUnknown:
		c := q.call(ev.Turn, ev.Call)
		q.waits(Waiting{Call: ev.Call, Turn: ev.Turn, Tool: c.tool, Kind: WaitsForOutcome, Reason: ev.Reason, Arguments: c.arguments, Flagged: c.flagged, N: n})
	case messages.ApprovalRequested:
		w := Waiting{Call: ev.Call, Turn: ev.Turn, Tool: ev.Tool, Kind: WaitsForApproval, Reason: ev.Reason, Arguments: ev.Arguments, ArgsHash: ev.ArgsHash, N: n}
		w.Flagged = q.call(ev.Turn, ev.Call).flagged
		if ev.ExpiresAt != nil {
			w.ExpiresAt = *ev.ExpiresAt
		}
		q.waits(w)
	case messages.ApprovalGranted:
		q.waitsNoMore(ev.Turn, ev.Call)
	case messages.ApprovalDenied:
		q.waitsNoMore(ev.Turn, ev.Call)
	case messages.ToolCompleted:
		q.settle(ev.Turn, ev.Call)
	case messages.ToolFailed:
		q.settle(ev.Turn, ev.Call)
	case messages.ToolDenied:
		q.settle(ev.Turn, ev.Call)
	case messages.ToolSkipped:
		q.settle(ev.Turn, ev.Call)
	}
}

// call is what is known of a turn's call, good until the next change.
func (q *Queue) call(turn messages.TurnID, call messages.CallID) *unsettledCall {
	i := slices.IndexFunc(q.calls, func(c unsettledCall) bool { return c.turn == turn && c.call == call })
	if i < 0 {
		i = len(q.calls)
		q.calls = append(q.calls, unsettledCall{turn: turn, call: call})
	}
	return &q.calls[i]
}

// waits puts w behind those that wait, once.
func (q *Queue) waits(w Waiting) {
	q.waitsNoMore(w.Turn, w.Call)
	w.At = q.at
	q.waiting = append(q.waiting, w)
}

func (q *Queue) waitsNoMore(turn messages.TurnID, call messages.CallID) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w Waiting) bool { return w.by == "" && w.Turn == turn && w.Call == call })
}

// settle forgets a turn's call.
func (q *Queue) settle(turn messages.TurnID, call messages.CallID) {
	q.waitsNoMore(turn, call)
	q.waitsBelowNoMore(turn, call)
	q.calls = slices.DeleteFunc(q.calls, func(c unsettledCall) bool { return c.turn == turn && c.call == call })
}

// ended forgets the calls of a turn.
func (q *Queue) ended(turn messages.TurnID) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w Waiting) bool { return w.by == "" && w.Turn == turn || w.by != "" && w.in == turn })
	q.calls = slices.DeleteFunc(q.calls, func(c unsettledCall) bool { return c.turn == turn })
}

// Waiting is the calls that a person must settle, oldest first.
func (q *Queue) Waiting() []Waiting { return slices.Clone(q.waiting) }

// More says that more calls wait below the agent than Waiting has: a child lists
// at most messages.MaxWaits.
func (q *Queue) More() bool {
	return slices.ContainsFunc(q.waiting, func(w Waiting) bool { return w.more })
}

// Approvals is the calls of agent a, and of those below it, that wait for
// approval, oldest first.
func (q *Queue) Approvals(a messages.AgentID) []messages.Approval {
	var list []messages.Approval
	for _, w := range q.waiting {
		if w.Kind == WaitsForApproval {
			whose := a
			if id, err := messages.ParseAgentID(w.Agent); err == nil {
				whose = id
			}
			list = append(list, messages.Approval{
				Agent: whose, Turn: w.Turn, Call: w.Call, Tool: w.Tool, Arguments: w.Arguments, ArgsHash: w.ArgsHash,
				Reason: w.Reason, Flagged: w.Flagged, ExpiresAt: w.ExpiresAt, N: w.N, At: w.At,
			})
		}
	}
	return list
}

// waitBelow replaces what waits below a call.
func (q *Queue) waitBelow(n messages.EventNumber, ev messages.ChildWaiting) {
	q.waitsBelowNoMore(ev.Turn, ev.Call)
	for _, w := range ev.Waiting {
		arguments := w.Arguments
		if w.Cut {
			arguments += " [cut; agent " + w.Agent + " has them whole]"
		}
		below := Waiting{
			Agent: w.Agent, Turn: w.Turn, Call: w.Call, Tool: w.Tool, Kind: w.Kind, Reason: w.Reason,
			Arguments: arguments, ArgsHash: w.ArgsHash, N: n, At: q.at, by: ev.Call, in: ev.Turn, more: ev.More,
		}
		if w.ExpiresAt != nil {
			below.ExpiresAt = *w.ExpiresAt
		}
		q.waiting = append(q.waiting, below)
	}
}

func (q *Queue) waitsBelowNoMore(turn messages.TurnID, call messages.CallID) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w Waiting) bool { return w.by != "" && w.in == turn && w.by == call })
}
