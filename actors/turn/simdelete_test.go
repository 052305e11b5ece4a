package turn_test

import (
	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// deletion is how far the end of the agent is, as the events tell it.
type deletion int

const (
	lives  deletion = iota
	closed          // the tombstone is due
	buried          // what was before it is to be removed
	gone
)

// delete orders the agent's end.
func (s *sim) delete() {
	c := messages.Delete{ID: s.id(), Reason: s.one("", "no more")}
	if s.chance(4) {
		c.Last = s.live.Last - messages.EventNumber(s.r.IntN(2))
	}
	s.decide(c)
}

// purged says what a frame leaves of the log and of what the shell remembers.
func (s *sim) purged(f *messages.Frame) {
	for _, ev := range f.Events {
		switch ev.(type) {
		case messages.AgentDeleted:
			s.spent = map[string]messages.EventNumber{}
			s.tombstone = len(s.log)
			if (f.Cause.Door == "" || f.Cause.ID == "") && !s.blind {
				s.fail("a delete that comes again would have another effect")
			}
		case messages.AgentPurged:
			s.kept = s.tombstone
		}
	}
}

// cause is that of a frame: of a tombstone that was due, what closed the agent.
func (s *sim) cause(due *turn.Deletion) messages.Cause {
	if due != nil {
		return due.Cause()
	}
	return messages.Cause{Type: "effect"}
}

// deleted holds a step of the agent's end against those before it, and says
// whether the event is one.
func (c *checker) deleted(ev messages.Event, alone bool) bool {
	switch ev.(type) {
	case messages.AgentClosed:
		_, ordered := c.cmd.(messages.Delete)
		c.must(c.cmd == nil || ordered, "closed without a word")
		c.must(c.end == lives && c.open == nil && len(c.queue) == 0, "closed while something runs or waits")
		c.end = closed
		clear(c.passed)
	case messages.AgentDeleted:
		_, ordered := c.cmd.(messages.Delete)
		_, due := c.cmd.(turn.BurialDue)
		c.must(c.cmd == nil || ordered && c.end == lives || due && c.end == closed, "deleted without a word")
		c.must(alone, "a tombstone that does not stand alone")
		c.drained()
		*c = checker{s: c.s, n: c.n, cmd: c.cmd, end: buried, inputs: map[string]*inputFacts{}, keys: map[string]messages.CallID{}, remembered: map[string]verdict{},
			stopping: map[string]bool{}, children: c.children, tasks: map[string]*taskFacts{}, passed: map[string]messages.ChildDecided{}}
		c.blank()
	case messages.AgentPurged:
		_, done := c.cmd.(turn.Purged)
		c.must(c.end == buried && (c.cmd == nil || done), "purged what is not deleted")
		c.end = gone
		c.blank()
	case messages.AgentCreated:
		c.must(c.n == 1 || c.end == gone, "created while it lives, or while it is being removed")
		c.end = lives
	case messages.AgentActivated:
	case messages.ChildStopped, messages.ChildReported: // what must be over before the tombstone
		c.must(c.end == lives || c.end == closed, "something happens to a deleted agent")
		return false
	case messages.CommandNoop:
		_, reported := c.cmd.(messages.Report)
		_, recalled := c.cmd.(messages.Recall)
		_, settled := c.cmd.(messages.Settled)
		c.must(c.end == lives || c.end == closed && (c.cmd == nil || reported || recalled || settled), "something happens to a deleted agent")
		return false
	default:
		c.must(c.end == lives, "something happens to a deleted agent")
		return false
	}
	return true
}

// blank checks that the agent remembers nothing.
func (c *checker) blank() {
	if live := c.s.live; c.cmd != nil {
		c.must(live.Turn == nil && live.Ended == nil && len(live.Queue) == 0 && live.History.Len() == 0 && string(live.Data.JSON()) == "{}" &&
			len(live.Remembered) == 0 && live.Definition == "" && live.Raised == (messages.Limits{}), "a deleted agent remembers something")
	}
}

// ending checks what a deleted agent has to do. It owes that its children are
// stopped and its parent is told, and then its end.
func (c *checker) ending(effects []turn.Effect, owes bool) {
	live := c.s.live
	if owes {
		c.must(c.end == closed && len(effects) == 0 && live.Open() && live.Phase() == "deleted", "a deletion does not wait for others")
		return
	}
	due := map[deletion]turn.Action{closed: turn.Bury, buried: turn.Purge}[c.end]
	one := len(effects) == 1 && effects[0] == turn.Effect{Do: due}
	c.must(one == (due != 0) && (one || len(effects) == 0) && live.Open() == one && live.Phase() == "deleted", "a deletion stands still, or a deleted agent does something")
}
