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
	return m.Store.Purge(ctx, a, before)
}

// RemoveBlobs removes blobs while the node runs.
func (m *nodeLog) RemoveBlobs(ctx context.Context, a messages.AgentID, upto uint64, hashes ...messages.Digest) error {
	if m.hasCrashed() {
		return errCrashed
	}
	return m.Store.RemoveBlobs(ctx, a, upto, hashes...)
}

// RemoveSnapshots removes snapshots while the node runs.
func (m *nodeLog) RemoveSnapshots(ctx context.Context, a messages.AgentID, upto uint64) error {
	if m.hasCrashed() {
		return errCrashed
	}
	return m.Store.RemoveSnapshots(ctx, a, upto)
}
