package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Life is what an agent is, from its creation to its deletion. The zero value is an agent
// without events.
type Life struct {
	// Definition is the hash that the agent was last configured with.
	Definition string
	// Deleted is set from the agent's end until it is created again. Nil: it exists, or never
	// did.
	Deleted *Deleted
	// DeletedAt is when the newest tombstone was written, as [Life.At] or [Life.Written] report
	// it. It stays when the agent is created again. Zero: there is none.
	DeletedAt time.Time

	origin
}

// Deleted is the end of an agent, as its tombstone records it.
type Deleted struct {
	N      messages.EventNumber // of the tombstone
	Reason string
	// Upto is how far the removal goes in the streams beside the log.
	Upto messages.Extent
}

// Deletion is the end of an agent as views show it.
type Deletion struct {
	// N is the number of the tombstone.
	N messages.EventNumber `json:"n"`
	// At is when the agent was deleted.
	At     time.Time `json:"at,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// Apply folds event number n.
func (l *Life) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.AgentCreated:
		l.Deleted = nil
	case messages.AgentConfigured:
		l.Definition = ev.Definition
	case messages.AgentDeleted:
		*l = Life{Deleted: &Deleted{N: n, Reason: ev.Reason, Upto: ev.Upto}, DeletedAt: l.at, origin: l.origin}
	}
}

// Written sets when event n was written, for a caller that applies events before they are.
func (l *Life) Written(n messages.EventNumber, at time.Time) {
	if l.Deleted != nil && l.Deleted.N == n {
		l.DeletedAt = at
	}
}

// Deletion returns how the agent ended; nil if it was not deleted.
func (l *Life) Deletion() *Deletion {
	if l.Deleted == nil {
		return nil
	}
	return &Deletion{N: l.Deleted.N, At: l.DeletedAt, Reason: l.Deleted.Reason}
}
