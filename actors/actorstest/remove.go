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

// RemoveBlobs removes blobs while the node lives.
func (m *mortal) RemoveBlobs(ctx context.Context, a messages.AgentID, hashes ...messages.Digest) error {
	if m.dead() {
		return errDead
	}
	return m.Log.RemoveBlobs(ctx, a, hashes...)
}

// RemoveSnapshots removes snapshots while the node lives.
func (m *mortal) RemoveSnapshots(ctx context.Context, a messages.AgentID, names ...string) error {
	if m.dead() {
		return errDead
	}
	return m.Log.RemoveSnapshots(ctx, a, names...)
}
