package projections

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages"
)

// MaxPreview is the most bytes of an output that an Effect holds.
const MaxPreview = 400

// Effect is one call of a tool as a list shows it: a line of `reprise effects -o json`.
type Effect struct {
	Agent messages.AgentID `json:"agent"`
	// N is the event that asked for it; it names the call within its agent. At is
	// when that was recorded.
	N  messages.EventNumber `json:"n"`
	At time.Time            `json:"at,omitzero"`
	// ToolCall has of the output its beginning, at most MaxPreview bytes.
	ToolCall
}

// Effects lists every call of a tool that an agent's models asked for, those
// before it was cleared included. The zero value has none. A call is first told
// of by tool.requested; what is said of another call of the same name, once the
// first has ended, is another call's.
type Effects struct {
	at   time.Time
	by   *messages.Person
	list []Effect
	open []int // indexes in list of calls that may still change
}

// EffectsAfter is the fold of what comes after open: calls without a final
// outcome, as another Effects told them.
func EffectsAfter(open []Effect) *Effects {
	e := &Effects{list: slices.Clone(open)}
	for i := range open {
		e.open = append(e.open, i)
	}
	return e
}

// At says when the events that are applied next were recorded.
func (e *Effects) At(at time.Time) { e.at = at.UTC() }

// By implements [Attributed].
func (e *Effects) By(p *messages.Person) { e.by = p }

// Apply folds event number n.
func (e *Effects) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev.(type) {
	case messages.HookDecided:
		if c := e.find(messages.TurnOf(ev), messages.CallOf(ev)); c != nil {
			c.apply(origin{n, e.at, e.by}, ev)
		}
	case messages.ToolRequested, messages.ToolFlagged, messages.ApprovalRequested, messages.ApprovalGranted, messages.ApprovalDenied,
		messages.ToolStarted, messages.ToolUnknown, messages.ToolCompleted, messages.ToolFailed, messages.ToolDenied, messages.ToolSkipped:
		e.applyCall(n, ev)
	case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
		turn := messages.TurnOf(ev)
		e.giveUp(n, func(c *Effect) bool { return c.Turn == turn })
	case messages.AgentCleared:
		e.giveUp(n, func(*Effect) bool { return true })
	case messages.AgentDeleted:
		*e = Effects{at: e.at}
	}
}

// applyCall folds an event about a call.
func (e *Effects) applyCall(n messages.EventNumber, ev messages.Event) {
	c := e.call(n, messages.TurnOf(ev), messages.CallOf(ev))
	if c.apply(origin{n, e.at, e.by}, ev); c.Outcome.Final() {
		c.Output = beginning(c.Output)
		e.open = slices.DeleteFunc(e.open, func(i int) bool { return &e.list[i] == c })
	}
}

// find returns a turn's call that has not ended, valid until the next change; nil if there is
// none.
func (e *Effects) find(turn messages.TurnID, call messages.CallID) *Effect {
	for _, i := range slices.Backward(e.open) {
		if c := &e.list[i]; c.Turn == turn && c.ID == call {
			return c
		}
	}
	return nil
}

// call is find; a call that is not known begins with event n.
func (e *Effects) call(n messages.EventNumber, turn messages.TurnID, call messages.CallID) *Effect {
	if c := e.find(turn, call); c != nil {
		return c
	}
	e.open = append(e.open, len(e.list))
	e.list = append(e.list, Effect{N: n, At: e.at, ToolCall: ToolCall{Turn: turn, ID: call, Outcome: CallRequested}})
	return &e.list[len(e.list)-1]
}

// beginning is what an Effect shows of an output.
func beginning(s string) string {
	if len(s) <= MaxPreview {
		return s
	}
	cut := MaxPreview
	for cut > MaxPreview-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// giveUp ends chosen calls that have no outcome when their turn ends.
func (e *Effects) giveUp(n messages.EventNumber, chosen func(*Effect) bool) {
	rest := e.open[:0]
	for _, i := range e.open {
		c := &e.list[i]
		if !chosen(c) {
			rest = append(rest, i)
			continue
		}
		outcome := CallSkipped
		if c.Started != 0 {
			outcome = CallUnknown
		}
		c.leave(outcome)
		c.Reason, c.Ended, c.EndedAt = "its turn ended without a word of it", n, e.at
	}
	e.open = rest
}

// List is every call of agent a, as the model asked for them.
func (e *Effects) List(a messages.AgentID) []Effect {
	list := slices.Clone(e.list)
	for i := range list {
		if list[i].Agent = a; list[i].Outcome == CallWaiting && !list[i].Waits() {
			list[i].leave(CallRequested)
		}
	}
	return list
}

// AsApproval returns the call as one that waits for a person's approval, and reports whether it
// does.
func (c Effect) AsApproval() (messages.Approval, bool) {
	return messages.Approval{
		Agent: c.Agent, Turn: c.Turn, Call: c.ID, Tool: c.Tool, Arguments: c.Arguments, ArgsHash: c.ArgsHash,
		Reason: c.Reason, Flagged: c.Flagged, ExpiresAt: c.ExpiresAt, N: c.Asked, At: c.AskedAt,
	}, c.Waits()
}
