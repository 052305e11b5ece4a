package actorstest

import (
	"context"

	"github.com/reprise-dev/reprise/messages"
)

// hasCrashed reports whether the node has crashed. Then it removes nothing more.
func (m *nodeLog) hasCrashed() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.crashed
}

// Purge removes history while the node runs.
func (m *nodeLog) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	if m.hasCrashed() {
		return errCrashed
	}
	return m.Log.Purge(ctx, a, before)
}

// PurgeUpto removes blobs and snapshots while the node runs.
func (m *nodeLog) PurgeUpto(ctx context.Context, a messages.AgentID, upto messages.Extent) error {
	if m.hasCrashed() {
		return errCrashed
	}
	return m.Log.PurgeUpto(ctx, a, upto)
}
