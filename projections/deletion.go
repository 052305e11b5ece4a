package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// PhaseDeleted is the phase of an agent that was deleted and has not been created again.
const PhaseDeleted = "deleted"

// Life is what an agent is, from its creation to its deletion. The zero value is an agent
// without events.
type Life struct {
	// Definition is the hash that the agent was last configured with.
	Definition string
	// Deleted is set from the agent's end until it is created again. Nil: it exists, or never
	// did.
	Deleted *Deleted

	origin
}

// Deleted is the end of an agent, as its tombstone records it.
type Deleted struct {
	Deletion
	// Upto is how far the removal goes in the streams beside the log.
	Upto messages.Extent
}

// Deletion is the end of an agent as views show it.
type Deletion struct {
	// N is the number of the tombstone, At when it was written, where [Life.At] was called.
	N      messages.EventNumber `json:"n"`
	At     time.Time            `json:"at,omitzero"`
	Reason string               `json:"reason,omitempty"`
}

// Apply folds event number n.
func (l *Life) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.AgentCreated:
		l.Deleted = nil
	case messages.AgentConfigured:
		l.Definition = ev.Definition
	case messages.AgentDeleted:
		*l = Life{Deleted: &Deleted{Deletion: Deletion{N: n, At: l.at, Reason: ev.Reason}, Upto: ev.Upto}, origin: l.origin}
	}
}

// Deletion returns how the agent ended; nil if it was not deleted.
func (l *Life) Deletion() *Deletion {
	if l.Deleted == nil {
		return nil
	}
	end := l.Deleted.Deletion
	return &end
}
