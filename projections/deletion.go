package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// PhaseDeleted is the phase of an agent that was deleted and not created again since.
const PhaseDeleted = "deleted"

// Deletion is the end of an agent, as its tombstone records it.
type Deletion struct {
	// N is the event that deleted it.
	N      messages.EventNumber `json:"n"`
	At     time.Time            `json:"at,omitzero"`
	Reason string               `json:"reason,omitempty"`
}

// Life folds whether an agent was deleted. The zero value is an agent that exists, or
// never did.
type Life struct {
	at  time.Time
	end *Deletion
}

// At sets when the events that are applied next were recorded.
func (l *Life) At(at time.Time) { l.at = at.UTC() }

// Apply folds event number n.
func (l *Life) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.AgentCreated:
		l.end = nil
	case messages.AgentDeleted:
		l.end = &Deletion{N: n, At: l.at, Reason: ev.Reason}
	}
}

// End returns how the agent ended; nil if it exists. The caller owns the result.
func (l *Life) End() *Deletion {
	if l.end == nil {
		return nil
	}
	end := *l.end
	return &end
}
