package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// MaxPreview is the most bytes of an output that an Effect holds.
const MaxPreview = 400

// Effect is one call of a tool as a list shows it: a line of `reprise effects -o json`.
type Effect struct {
	Agent messages.AgentID `json:"agent"`
	// N is the event that asked for it, the tool.requested. It names the call within its agent.
	N messages.EventNumber `json:"n"`
	// At is the time of that event.
	At time.Time `json:"at,omitzero"`
	// Imported reports whether the model asked for it before the agent was imported.
	Imported bool `json:"imported,omitempty"`
	// BeforeFork reports whether it was asked for before the agent was forked, by the model of its parent.
	BeforeFork bool `json:"before_fork,omitempty"`
	// ToolCall has of the output its beginning, at most MaxPreview bytes.
	ToolCall
	// Repeats is the newest earlier call of the agent, in any turn, that has the same tool and
	// the same arguments and that may have had its effect. 0: there is none, or the tool only
	// reads.
	Repeats messages.EventNumber `json:"repeats,omitempty"`
}

// Effects lists every call of a tool that an agent's models asked for, those
// before it was cleared included. The zero value has none. A call begins with its
// tool.requested; an event about a call that has ended begins another one of the same name.
type Effects struct {
	origin
	list []Effect
	open []int // indexes in list of calls that may still change
	size int   // bytes of arguments in list
}

// EffectsAfter returns the fold of what comes after open: calls without a final outcome, as
// another Effects has listed them.
func EffectsAfter(open []Effect) *Effects {
	e := &Effects{list: slices.Clone(open)}
	for i := range open {
		e.open, e.size = append(e.open, i), e.size+len(open[i].Arguments)
	}
	return e
}

// Apply folds event number n.
func (e *Effects) Apply(n messages.EventNumber, ev messages.Event) {
	x := e.event(n, ev)
	switch {
	case x.Is(messages.OfTool):
		e.applyCall(x)
	case x.Is(messages.EndsTurn):
		e.giveUp(x, func(c *Effect) bool { return c.Turn == x.Turn })
	case x.Is(messages.EndsAgent):
		*e = Effects{origin: e.origin}
	case x.Is(messages.ClearsAgent):
		e.giveUp(x, func(*Effect) bool { return true })
	case x.Is(messages.BeginsFork):
		e.inherited(x)
	default: // a hook may give a call other arguments
		if c := e.find(x.Turn, x.Call); c != nil {
			e.change(c, x)
		}
	}
}

// inherited marks all calls before an event as those of the agent that this one was imported or forked from.
func (e *Effects) inherited(x *event) {
	_, imported := x.Event.(messages.AgentImported)
	for i := range e.list {
		c := &e.list[i]
		c.Imported, c.BeforeFork = c.Imported || imported, c.BeforeFork || !imported
	}
}

// applyCall folds an event about a call. It is the first one of a call that is not known.
func (e *Effects) applyCall(x *event) {
	c := e.find(x.Turn, x.Call)
	if c == nil {
		e.open = append(e.open, len(e.list))
		e.list = append(e.list, Effect{N: x.n, At: x.at, ToolCall: ToolCall{Turn: x.Turn, ID: x.Call, Outcome: CallRequested}})
		c = &e.list[len(e.list)-1]
	}
	if e.change(c, x); c.Outcome.Final() {
		c.Output = beginning(c.Output, MaxPreview)
		e.open = without(e.open, func(i *int) bool { return &e.list[*i] == c })
	}
}

// change applies an event to a call of the list.
func (e *Effects) change(c *Effect, x *event) {
	e.size -= len(c.Arguments)
	c.apply(x)
	e.size += len(c.Arguments)
}

// Size returns how many bytes of arguments the list holds.
func (e *Effects) Size() int { return e.size }

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

// giveUp ends chosen calls that have no outcome when their turn ends.
func (e *Effects) giveUp(x *event, chosen func(*Effect) bool) {
	e.open = without(e.open, func(i *int) bool {
		c := &e.list[*i]
		if !chosen(c) {
			return false
		}
		c.giveUp(x)
		return true
	})
}

// List returns every call of agent a, in the order in which models asked for them.
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
