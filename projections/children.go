package projections

import (
	"cmp"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// The statuses of a Child.
const (
	ChildRunning   = "running"
	ChildWaits     = "waiting" // for a person
	ChildCompleted = "completed"
	ChildFailed    = "failed"
	ChildStopping  = "stopping" // its call has ended
	ChildStopped   = "stopped"
	ChildDetached  = "detached" // its call does not wait for it
)

// Child is an agent that does the task of a tool call: a line of the view children.
type Child struct {
	// N is its child.spawned.
	N messages.EventNumber `json:"n"`
	// Agent is the address of the child.
	Agent messages.AgentID `json:"agent"`
	// Turn is the turn of the call.
	Turn messages.TurnID `json:"turn"`
	// Call is the call whose task it does.
	Call messages.CallID `json:"call"`
	Tool string          `json:"tool"`
	// Status is `running`, `waiting` (for a person), `completed`, `failed`, `stopping` (its call has
	// ended), `stopped` or `detached` (its call does not wait for it).
	Status string `json:"status"`
	// Waiting is how many calls wait for a person in the child and below it.
	Waiting int `json:"waiting,omitempty"`
	// More reports whether there are more than the child lists.
	More bool `json:"more,omitempty"`
	// Message is why it failed.
	Message string `json:"message,omitempty"`
	// Usage is what it and those below it have used, once it has ended.
	Usage messages.Usage `json:"usage,omitzero"`
	// Cost is what it and those below it have cost, in billionths of the price table's unit.
	Cost messages.Cost `json:"cost_nanos,omitempty"`
}

// Children are the children of an agent, and the call that it works for itself. The zero value
// has none.
type Children struct {
	parent *messages.Caller
	turn   messages.TurnID // the newest
	list   []Child
}

// Apply folds event number n.
func (c *Children) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		if ev.Parent != nil {
			caller := ev.Parent.Caller
			c.parent = &caller
		}
	case messages.ChildSpawned:
		agent, _ := messages.ParseAgentID(ev.Child) // zero where the log holds another address
		status := ChildRunning
		if ev.Detached {
			status = ChildDetached
		}
		c.list = append(c.list, Child{N: n, Agent: agent, Turn: ev.Turn, Call: ev.Call, Tool: ev.Tool, Status: status})
	default:
		switch f := messages.FieldsOf(ev); {
		case f.Is(messages.BeginsFork): // they are the parent's
			*c = Children{turn: c.turn}
		case f.Is(messages.BeginsTurn):
			c.turn = f.Turn
		case f.Is(messages.EndsAgent):
			*c = Children{}
		default:
			if x := lastOf(c.list, func(x *Child) bool { return x.Turn == f.Turn && x.Call == f.Call }); x != nil {
				x.apply(ev)
			}
		}
	}
}

// apply folds what a child waits for, and its end.
func (x *Child) apply(ev messages.Event) {
	if w, ok := childWaits(ev); ok {
		x.Status, x.Waiting, x.More = ChildRunning, len(w.Waiting), w.More
		if x.Waiting > 0 && !w.Busy {
			x.Status = ChildWaits
		}
	} else if end := childEndOf(ev); end.status != "" {
		x.Status, x.Waiting, x.More, x.Message = end.status, 0, false, cmp.Or(end.message, x.Message)
		x.Usage, x.Cost = end.used.Usage, end.used.Cost
	}
}

// childWaits returns what a child waits for from here on; false if the event reports none.
func childWaits(ev messages.Event) (messages.ChildWaiting, bool) {
	switch ev := ev.(type) {
	case messages.ChildWaiting:
		return ev, true
	case messages.ChildResumed:
		return messages.ChildWaiting{Turn: ev.Turn, Call: ev.Call, N: ev.N}, true
	}
	return messages.ChildWaiting{}, false
}

// childEnd is how a child has ended, or that it is to.
type childEnd struct {
	status, message string
	used            messages.Used
}

// childEndOf returns what an event reports of the end of a child; no status: nothing.
func childEndOf(ev messages.Event) childEnd {
	switch ev := ev.(type) {
	case messages.ChildCompleted:
		return childEnd{ChildCompleted, "", ev.Used}
	case messages.ChildFailed:
		return childEnd{ChildFailed, ev.Message, ev.Used}
	case messages.ChildAborted:
		return childEnd{ChildStopping, ev.Reason, messages.Used{}}
	case messages.ChildStopped:
		return childEnd{ChildStopped, "", ev.Used}
	}
	return childEnd{}
}

// List returns all children, oldest first. It is the caller's.
func (c *Children) List() []Child { return slices.Clone(c.list) }

// Newest returns the children of the turn that started last, oldest first. It is the caller's.
func (c *Children) Newest() []Child {
	return slices.DeleteFunc(c.List(), func(child Child) bool { return child.Turn != c.turn })
}

// Parent returns the call that the agent works for, or did last; nil if it never did.
func (c *Children) Parent() *messages.Caller { return c.parent }
