package turn

import "github.com/reprise-dev/reprise/messages"

// unborn reports whether the next input creates the agent.
func (s *State) unborn() bool { return s.Last == 0 || s.Life.Deleted != nil }

// refuseDeleted refuses what a deleted agent cannot do.
func (d *decision) refuseDeleted(c messages.Command) error {
	del := d.s.Life.Deleted
	if del == nil || creates(c) {
		return nil
	}
	return messages.Refuse(messages.NotFound, "agent %s was deleted (event %d): it exists again once you send it an input", d.env.Agent, del.N)
}

// creates reports whether the command creates an agent again that was deleted. A task does
// not: it may be sent again long after its end.
func creates(c messages.Command) bool {
	switch c.(type) {
	case messages.Input, messages.SetState:
		return true
	}
	return false
}

// delete ends what runs and waits. Once there is nothing of that, it writes the tombstone,
// in a frame of its own: that frame stays when all before it is removed.
func (d *decision) delete(c messages.Delete) error {
	if c.Last != 0 && c.Last != d.s.Last {
		return messages.Refuse(messages.Conflict, "agent %s has gone on: its newest event is %d, not %d; look at it again before you delete it", d.env.Agent, d.s.Last, c.Last)
	}
	if d.drop("delete", c.Reason); len(d.events) == 0 && d.env.Upto != nil {
		d.emit(messages.AgentDeleted{Reason: c.Reason, Upto: *d.env.Upto})
	}
	return nil
}
