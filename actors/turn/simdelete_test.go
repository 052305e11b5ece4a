package turn_test

import (
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// delete orders the agent's end.
func (s *sim) delete() {
	c := messages.Delete{ID: s.id(), Reason: s.one("", "no more")}
	if s.chance(4) {
		c.Last = s.live.Last - messages.EventNumber(s.r.IntN(2))
	}
	s.decide(c)
}

// deletes does what the shell does with a delete. It may be cut off between the frame that
// ends what runs and the tombstone.
func (s *sim) deletes(c messages.Delete) {
	s.env.Upto = nil
	first := s.live.Last + 1
	events, err := s.feed(c)
	if err != nil {
		s.redelivered(c, events, err)
		return
	}
	s.write(first, messages.Cause{Type: c.CommandType(), Endpoint: "client"}, events)
	if s.chance(5) {
		return
	}
	s.check.ends = nil
	for _, e := range s.live.Ends() {
		m, _ := s.live.Message(s.env.Agent, e)
		s.check.ends = append(s.check.ends, m.Command)
	}
	c.Last, s.env.Upto, first = 0, &messages.Extent{Blobs: uint64(s.steps)}, s.live.Last+1
	events, err = s.feed(c)
	s.redelivered(c, events, err)
	s.write(first, messages.Cause{Type: c.CommandType(), ID: messages.IDOf(c), Endpoint: "client"}, events)
	if s.live.Life.Deleted == nil || s.live.Life.Deleted.Upto != *s.env.Upto {
		s.fail("a tombstone does not record how far the removal goes")
	}
}

// purged removes what a tombstone ends, from the log and from what the shell remembers.
func (s *sim) purged(f *messages.Frame) {
	if !slices.ContainsFunc(f.Events, func(ev messages.Event) bool { _, is := ev.(messages.AgentDeleted); return is }) {
		return
	}
	s.processed = map[string]messages.EventNumber{}
	if (f.Cause.Endpoint == "" || f.Cause.ID == "") && !s.blind {
		s.fail("a delete that comes again would have another effect")
	}
	if s.chance(2) { // else the removal is late
		s.kept = len(s.log)
	}
}

// deleted checks an event against the agent's end, and reports whether it is part of it.
func (c *checker) deleted(ev messages.Event, alone bool) bool {
	switch ev.(type) {
	case messages.AgentDeleted:
		_, ordered := c.cmd.(messages.Delete)
		c.must((c.cmd == nil || ordered) && !c.gone, "deleted without a command, or twice")
		c.must(alone, "a tombstone that does not stand alone")
		c.allEnded()
		*c = checker{s: c.s, n: c.n, cmd: c.cmd, gone: true, inputs: map[string]*inputFacts{}, keys: map[string]messages.CallID{}, remembered: map[string]rememberedDecision{},
			stopping: map[string]bool{}, children: c.children, tasks: map[string]*taskFacts{}, passed: map[string]messages.ChildDecided{}}
		c.blank()
	case messages.AgentCreated:
		c.must(c.n == 1 || c.gone, "created while it exists")
		c.gone = false
	case messages.AgentActivated:
	default:
		c.must(!c.gone, "something happens to a deleted agent")
		return false
	}
	return true
}

// allEnded checks that everything has ended, and that what others have yet to learn was
// stored for them.
func (c *checker) allEnded() {
	clear(c.passed) // decisions whose effect is not awaited any more
	if c.cmd != nil {
		c.must(len(c.s.live.Outbox.Messages) == 0, "a tombstone has left something to do")
		cancels := func(cmd messages.Command) bool { _, is := cmd.(messages.CancelChild); return is }
		c.must(len(c.stopping) == count(c.ends, cancels), "a child was not asked to stop")
		for id, t := range c.tasks {
			reports := func(cmd messages.Command) bool {
				r, is := cmd.(messages.Report)
				return is && r.ID == messages.ReportID(id, r.N) && r.What.Ends()
			}
			c.must(t.over || t.parent.Detached || count(c.ends, reports) == 1, "the end of a task was not reported to its parent")
		}
	}
	clear(c.stopping)
	clear(c.tasks)
	c.drained()
}

func count(list []messages.Command, is func(messages.Command) bool) (n int) {
	for _, c := range list {
		if is(c) {
			n++
		}
	}
	return n
}

// blank checks that the agent remembers nothing.
func (c *checker) blank() {
	if live := c.s.live; c.cmd != nil {
		c.must(live.Turn == nil && live.Ended == nil && len(live.Inputs.Queued) == 0 && live.History.Len() == 0 && string(live.Data.JSON()) == "{}" &&
			len(live.Decisions.List) == 0 && live.Life.Definition == "" && live.Overrides == (messages.Limits{}), "a deleted agent remembers something")
	}
}

// ending checks that a deleted agent has nothing to do.
func (c *checker) ending(effects []turn.Effect) {
	live := c.s.live
	c.must(len(effects) == 0 && !live.Open() && live.Phase() == "deleted", "a deleted agent does something")
}
