package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// PhaseDeleted is the phase of an agent that was deleted and not made anew since.
const PhaseDeleted = "deleted"

// Deletion is the end of an agent, as its tombstone tells it.
type Deletion struct {
	// N is the event that deleted it; 0 while what it did is being ended.
	N      messages.EventNumber `json:"n"`
	At     time.Time            `json:"at,omitzero"`
	Reason string               `json:"reason,omitempty"`
	// Removed is what was removed with it. Nil: that is still under way.
	Removed *messages.Holdings `json:"removed,omitempty"`
}

// Life says whether an agent was deleted. The zero value is an agent that lives,
// or that nothing has happened to.
type Life struct {
	at  time.Time
	end *Deletion
}

// At says when the events that are applied next were recorded.
func (l *Life) At(at time.Time) { l.at = at.UTC() }

// Apply folds event number n.
func (l *Life) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.AgentCreated:
		l.end = nil
	case messages.AgentClosed:
		l.end = &Deletion{Reason: ev.Reason}
	case messages.AgentDeleted:
		l.end = &Deletion{N: n, At: l.at, Reason: ev.Reason}
	case messages.AgentPurged:
		if l.end == nil { // its tombstone is lost
			l.end = &Deletion{N: ev.Deleted, At: l.at}
		}
		removed := ev.Holdings
		l.end.Removed = &removed
	}
}

// End is how the agent ended; nil if it lives. It is the caller's.
func (l *Life) End() *Deletion {
	if l.end == nil {
		return nil
	}
	end := *l.end
	return &end
}
