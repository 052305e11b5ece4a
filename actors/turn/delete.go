package turn

import (
	"fmt"

	"github.com/reprise-dev/reprise/messages"
)

// Deletion is how far the end of an agent is.
type Deletion struct {
	// Command is the id of the delete, until the tombstone stands.
	Command string
	Reason  string
	// Person is who gave it. Nil: no one is named, or the tombstone stands.
	Person *messages.Person
	// N is the number of the tombstone; 0: it does not stand yet.
	N messages.EventNumber
	// Purged says that nothing is stored any more of what was before N.
	Purged bool
}

// unborn says that the next input makes the agent.
func (s *State) unborn() bool { return s.Last == 0 || s.Deleted != nil }

// burial is what is to be done until a deleted agent is gone. Its children are
// stopped and its parent is told before the tombstone, which nothing outlives.
func (s *State) burial(del *Deletion) []Effect {
	switch {
	case del.N != 0:
		return []Effect{{Do: Purge}}
	case s.owesOthers():
		return s.letters(nil)
	}
	return []Effect{{Do: Bury}}
}

// Buries says what must be known to write the tombstone; nil if none is due.
func (s *State) Buries() *Deletion {
	if d := s.Deleted; d != nil && d.N == 0 && !s.owesOthers() {
		return d
	}
	return nil
}

// Cause is that of the tombstone that follows agent.closed: the command that
// closed the agent. It records the command's id again, because a tombstone ends the deduplication window.
func (d *Deletion) Cause() messages.Cause {
	return messages.Cause{Type: messages.Delete{}.CommandType(), ID: d.Command, Door: "ctl", Reason: d.Reason}.From(d.Person)
}

// refuseDeleted refuses what a deleted agent cannot do, and everything while its
// deletion is under way.
func (d *decision) refuseDeleted(c messages.Command) error {
	switch del := d.s.Deleted; {
	case del == nil:
		return nil
	case del.N == 0 && settles(c):
		return nil
	case !del.Purged:
		return messages.Refuse(messages.Unavailable, "agent %s is being deleted: try again with the same id when it is gone", d.env.Agent)
	case makes(c):
		return nil
	default:
		return messages.Refuse(messages.NotFound, "agent %s was deleted (event %d): it exists again once you send it an input", d.env.Agent, del.N)
	}
}

// OvertakenError says that the agent was deleted, with the tombstone N, and that a
// command may have been taken before that.
type OvertakenError struct {
	Agent messages.AgentID
	N     messages.EventNumber
}

// Error says so.
func (e *OvertakenError) Error() string {
	return fmt.Sprintf("agent %s was deleted (event %d), and this may have been sent before that: send it again if it is still wanted", e.Agent, e.N)
}

// refuseOvertaken refuses what an agent was to be told in an earlier life.
func (d *decision) refuseOvertaken() error {
	if k := d.env.Known; k != nil && *k < d.s.Tombstone {
		return &OvertakenError{d.env.Agent, d.s.Tombstone}
	}
	return nil
}

// settles says that the command is part of what must be over before an agent's
// tombstone is written: what its children and its parent have to say.
func settles(c messages.Command) bool {
	switch c.(type) {
	case messages.Report, messages.Recall, messages.Settled:
		return true
	}
	return false
}

// makes says that the command makes an agent that was deleted anew. A task does
// not: it may be told again long after its end.
func makes(c messages.Command) bool {
	switch c.(type) {
	case messages.Input, messages.SetState:
		return true
	}
	return false
}

// delete ends the agent. What it does is ended first, in a frame that goes with
// the rest; the tombstone must stand alone, for it stays.
func (d *decision) delete(c messages.Delete) error {
	if c.Last != 0 && c.Last != d.s.Last {
		return messages.Refuse(messages.Conflict, "agent %s has gone on: its newest event is %d, not %d; look at it again before you delete it", d.env.Agent, d.s.Last, c.Last)
	}
	if s := d.s; s.Turn == nil && len(s.Queue) == 0 && len(s.Schedules) == 0 && s.Summary == nil && !s.owesOthers() {
		d.emit(messages.AgentDeleted{Reason: c.Reason})
		return nil
	}
	d.drop("delete", c.Reason)
	d.emit(messages.AgentClosed{Command: c.ID, Reason: c.Reason, Person: d.env.Person})
	return nil
}

// evolveDeletion folds what is said of the agent's end.
func (s *State) evolveDeletion(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.AgentCreated:
		s.Deleted = nil
	case messages.AgentClosed:
		s.Deleted, s.Passed = &Deletion{Command: ev.Command, Reason: ev.Reason, Person: ev.Person}, nil // no one asks what became of those
	case messages.AgentDeleted:
		*s = State{Last: s.Last, Deleted: &Deletion{Reason: ev.Reason, N: s.Last}, Tombstone: s.Last}
	case messages.AgentPurged:
		end := Deletion{N: ev.Deleted, Purged: true}
		if s.Deleted != nil { // else its tombstone is lost
			end = Deletion{Reason: s.Deleted.Reason, N: s.Deleted.N, Purged: true}
		}
		s.Deleted, s.Tombstone = &end, end.N
	}
}

// BurialDue says that the tombstone can be written: what was before it is in
// the log.
type BurialDue struct{}

// Purged says that all that was stored before the tombstone is gone.
type Purged struct{ messages.Holdings }

// deletion decides what follows from a step of the agent's end.
func (d *decision) deletion(o any) {
	del := d.s.Deleted
	switch o := o.(type) {
	case BurialDue:
		if d.s.Buries() != nil {
			d.emit(messages.AgentDeleted{Reason: del.Reason})
		}
	case Purged:
		if del.N != 0 && !del.Purged {
			d.emit(messages.AgentPurged{Deleted: del.N, Holdings: o.Holdings})
		}
	}
}
