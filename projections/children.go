package projections

import (
	"slices"

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

// Children is the children of an agent, and whom it works for itself. The zero
// value has none.
type Children struct {
	parent *messages.Caller
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
	case messages.ChildWaiting:
		c.change(ev.Turn, ev.Call, func(child *Child) {
			if child.Status, child.Waiting, child.More = ChildWaits, len(ev.Waiting), ev.More; ev.Busy {
				child.Status = ChildRunning
			}
		})
	case messages.ChildResumed:
		c.change(ev.Turn, ev.Call, func(child *Child) { child.Status, child.Waiting, child.More = ChildRunning, 0, false })
	case messages.ChildCompleted:
		c.end(ev.Turn, ev.Call, ChildCompleted, "", ev.Spent)
	case messages.ChildFailed:
		c.end(ev.Turn, ev.Call, ChildFailed, ev.Message, ev.Spent)
	case messages.ChildAborted:
		c.end(ev.Turn, ev.Call, ChildStopping, ev.Reason, messages.Spent{})
	case messages.ChildStopped:
		c.end(ev.Turn, ev.Call, ChildStopped, "", ev.Spent)
	}
}

func (c *Children) end(turn messages.TurnID, call messages.CallID, status, message string, spent messages.Spent) {
	c.change(turn, call, func(child *Child) {
		child.Status, child.Waiting, child.More = status, 0, false
		child.Usage, child.Cost = spent.Usage, spent.Cost
		if message != "" {
			child.Message = message
		}
	})
}

// change changes the newest child of a call.
func (c *Children) change(turn messages.TurnID, call messages.CallID, do func(*Child)) {
	for i := len(c.list) - 1; i >= 0; i-- {
		if c.list[i].Turn == turn && c.list[i].Call == call {
			do(&c.list[i])
			return
		}
	}
}

// List is all children, oldest first. It is the caller's.
func (c *Children) List() []Child { return slices.Clone(c.list) }

// Parent is the call that the agent works for, or did last; nil if it never did.
func (c *Children) Parent() *messages.Caller { return c.parent }
