package projections

import (
	"github.com/reprise-dev/reprise/messages"
)

// The statuses of a Child.
const (
	ChildRunning   = "running"
	ChildWaits     = "waiting" // for a person
	ChildCompleted = "completed"
	ChildFailed    = "failed"
	ChildStopping  = "stopping" // nobody waits for it any more
	ChildStopped   = "stopped"
	ChildDetached  = "detached" // it goes on by itself
)

// Child is an agent that a tool call has brought to life: a line of the view
// children.
type Child struct {
	// N is its child.spawned.
	N     messages.EventNumber `json:"n"`
	Agent messages.AgentID     `json:"agent"`
	Turn  messages.TurnID      `json:"turn"`
	Call  messages.CallID      `json:"call"`
	Tool  string               `json:"tool"`
	// Status is one of the words above.
	Status string `json:"status"`
	// Waiting is how many calls wait for a person there and below, as far as it
	// lists them; More says that there are more.
	Waiting int  `json:"waiting,omitempty"`
	More    bool `json:"more,omitempty"`
	// Message is why it failed.
	Message string `json:"message,omitempty"`
	// Usage and Cost are what it and those below it have used; known once it has
	// ended.
	Usage messages.Usage `json:"usage,omitzero"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
}

// Children are the children of an agent, and whom it works for itself. The zero
// value has none.
type Children struct {
	parent *messages.Caller
	list   []child
}

// child is a line with what the call knows of its child.
type child struct {
	Child
	call ChildCall
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
		c.list = append(c.list, child{Child: Child{N: n, Agent: agent, Turn: ev.Turn, Call: ev.Call, Tool: ev.Tool, Status: status}})
	case messages.ChildWaiting, messages.ChildResumed:
		if x := c.find(ev); x != nil {
			x.waits(n, ev)
		}
	case messages.ChildCompleted:
		c.end(ev, ChildCompleted, "", ev.Spent)
	case messages.ChildFailed:
		c.end(ev, ChildFailed, ev.Message, ev.Spent)
	case messages.ChildAborted:
		c.end(ev, ChildStopping, ev.Reason, messages.Spent{})
	case messages.ChildStopped:
		c.end(ev, ChildStopped, "", ev.Spent)
	}
}

// waits folds what the child waits for.
func (x *child) waits(n messages.EventNumber, ev messages.Event) {
	x.call.apply(origin{n: n}, ev)
	x.Status, x.Waiting, x.More = ChildRunning, len(x.call.Waiting), x.call.More
	if x.Waiting > 0 && !x.call.Busy {
		x.Status = ChildWaits
	}
}

func (c *Children) end(ev messages.Event, status, message string, spent messages.Spent) {
	x := c.find(ev)
	if x == nil {
		return
	}
	x.Status, x.Waiting, x.More = status, 0, false
	x.Usage, x.Cost = spent.Usage, spent.Cost
	if message != "" {
		x.Message = message
	}
}

// find returns the newest child of the call that an event names; nil if there is none.
func (c *Children) find(ev messages.Event) *child {
	turn, call := messages.TurnOf(ev), messages.CallOf(ev)
	for i := len(c.list) - 1; i >= 0; i-- {
		if x := &c.list[i]; x.Turn == turn && x.Call == call {
			return x
		}
	}
	return nil
}

// List returns all children, oldest first. It is the caller's.
func (c *Children) List() []Child {
	var list []Child
	for i := range c.list {
		list = append(list, c.list[i].Child)
	}
	return list
}

// Parent returns the call that the agent works for, or did last; nil if it never did.
func (c *Children) Parent() *messages.Caller { return c.parent }
