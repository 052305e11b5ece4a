package turn

import "github.com/reprise-dev/reprise/projections"

// What parts of a state take in memory beside the text that they hold, in bytes, measured
// roughly: an item of history with the form in which models are shown it, and an entry of
// any list.
const (
	itemBytes  = 400
	entryBytes = 200
)

// Size estimates how many bytes of memory the state takes. It is in proportion to the agent's
// own data, as that is walked.
func (s *State) Size() int {
	size := s.History.Bytes() + itemBytes*s.History.Len() + cap(s.processed.IDs) + cap(s.processed.Steps) + s.Data.Size()
	if t := s.Turn; t != nil {
		for i := range t.Calls {
			size += entryBytes + len(t.Calls[i].Arguments) + len(t.Calls[i].Output)
		}
	}
	for i := range s.Timers.Scheduled {
		in := s.Timers.Scheduled[i].Input
		size += projections.ContentBytes(in.Content) + len(in.Metadata)
	}
	lists := len(s.Inputs.Queued) + len(s.Inputs.Steered) + len(s.Timers.Scheduled) + len(s.Outbox.Messages) + len(s.Outbox.Tasks) + len(s.Decisions.List)
	return size + s.Outbox.Size() + entryBytes*lists
}
