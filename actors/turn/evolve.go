package turn

import (
	"github.com/reprise-dev/reprise/messages"
)

// Apply folds a frame that was read from the log. It depends on no definition.
func (s *State) Apply(f *messages.Frame) {
	if s.Last == 0 { // a tombstone may come first: what was before it is gone
		s.Last = f.First - 1
	}
	s.Work.Trace(f.Trace)
	for _, ev := range f.Events {
		s.evolve(ev)
	}
	s.Work.Trace("")
	s.Record(f)
}

// Activate folds the takeover of the agent by a new owner, and returns the events to append before
// anything else is done under that owner.
func (s *State) Activate(ev messages.AgentActivated) []messages.Event {
	s.evolve(ev)
	return []messages.Event{ev}
}

// Restart drops what no event records, as the loss of the process does: no effect of the state is
// under way any more.
func (s *State) Restart() { s.asking, s.lost = "", nil }

// evolve folds the next event.
func (s *State) evolve(ev messages.Event) {
	s.Last++
	s.History.Apply(s.Last, ev)
	if s.Life.Apply(s.Last, ev); s.Life.Deleted != nil && s.Life.Deleted.N == s.Last {
		*s = State{Last: s.Last, Life: s.Life}
		return
	}
	s.Forks.Apply(s.Last, ev)
	if o := s.Forks.Origin; o != nil && s.Last == o.At+1 {
		s.processed = window{} // those were commands of the parent
	}
	s.Data.Apply(s.Last, ev)
	s.Decisions.Apply(s.Last, ev)
	if s.Work.Apply(s.Last, ev); s.Turn == nil {
		s.asking = ""
	}
}

// inlineSize returns how many bytes the texts of c take in a frame.
func inlineSize(c messages.Content) int {
	size := 0
	for i := range c {
		size += len(c[i].Text)
	}
	return size
}
