package actorstest

import (
	"context"

	"github.com/reprise-dev/reprise/messages"
)

// dead says that the node has crashed: it removes nothing any more.
func (m *mortal) dead() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.isDead
}

// Purge removes history while the node lives.
func (m *mortal) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	if m.dead() {
		return errDead
	}
	return m.Log.Purge(ctx, a, before)
}

// PurgeUpto removes blobs and snapshots while the node lives.
func (m *mortal) PurgeUpto(ctx context.Context, a messages.AgentID, upto messages.Extent) error {
	if m.dead() {
		return errDead
	}
	return m.Log.PurgeUpto(ctx, a, upto)
}
