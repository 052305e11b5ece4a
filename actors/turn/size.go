package turn

// What parts of a state take in memory beside the text that they hold, in bytes, measured
// roughly: an item of history with the form in which models are shown it, a processed id, and
// an entry of any list.
const (
	itemBytes  = 400
	idBytes    = 32
	entryBytes = 200
)

// Size estimates how many bytes of memory the state takes. It is in proportion to the agent's
// own data, as that is walked.
func (s *State) Size() int {
	size := s.History.Size() + itemBytes*s.History.Len() + idBytes*cap(s.processed.hashes) + s.Data.Size()
	for _, in := range s.Inputs.Queued {
		size += entryBytes + in.Size
	}
	if t := s.Turn; t != nil {
		for i := range t.Calls {
			size += entryBytes + len(t.Calls[i].Arguments) + len(t.Calls[i].Output)
		}
	}
	size += s.Outbox.Size()
	return size + entryBytes*(len(s.Outbox.Messages)+len(s.Outbox.Tasks)+len(s.Timers.Scheduled)+len(s.Decisions.List))
}
