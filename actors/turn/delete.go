package turn

import "github.com/reprise-dev/reprise/messages"

// delete ends what runs and waits. Once there is nothing of that, it records the tombstone, in a
// frame of its own: that frame stays when all before it is removed.
func (d *decision) delete(c messages.Delete) error {
	if c.Last != 0 && c.Last != d.s.Last {
		return messages.Refuse(messages.Conflict, "agent %s has changed: its newest event is %d, not %d; look at it again before you delete it", d.env.Agent, d.s.Last, c.Last)
	}
	if d.drop(c.CommandType(), c.Reason); len(d.events) == 0 && d.env.Upto != nil {
		d.emit(messages.AgentDeleted{Reason: c.Reason, Upto: *d.env.Upto})
	}
	return nil
}
