package projections

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A cleared agent keeps its children, a deleted one does not.
func TestChildren(t *testing.T) { // A22
	var c Children
	for i, step := range []struct {
		ev          messages.Event
		all, newest int
		parent      bool
	}{
		{messages.InputAccepted{Input: "u1", Parent: &messages.Parent{Caller: messages.Caller{Agent: "default/root/r"}}}, 0, 0, true},
		{started("t2", "u1"), 0, 0, true},
		{messages.ChildSpawned{Turn: "t2", Call: "c", Child: "default/leaf/1"}, 1, 1, true},
		{messages.AgentCleared{}, 1, 1, true}, // its children keep running
		{started("t5"), 1, 0, true},
		{messages.ChildSpawned{Turn: "t5", Call: "c", Child: "default/leaf/2"}, 2, 1, true},
		{messages.AgentDeleted{}, 0, 0, false},
		{started("t8"), 0, 0, false},
	} {
		c.Apply(messages.EventNumber(i+1), step.ev)
		if len(c.List()) != step.all || len(c.Newest()) != step.newest || (c.Parent() != nil) != step.parent {
			t.Errorf("after event %d: got children %+v, newest %+v, parent %+v, want %d, %d, parent %t", i+1, c.List(), c.Newest(), c.Parent(), step.all, step.newest, step.parent)
		}
	}
}
