package actors

import (
	"context"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// shelf is the one way of snapshots to their store and back: whoever wants to
// change their bytes does it here.
type shelf struct{ store eventlog.Snapshots }

// put stores v and gives its size in bytes.
func (s *shelf) put(ctx context.Context, a messages.AgentID, name string, v any) (int, error) {
	b, err := messages.EncodeSnapshot(a, name, v)
	if err != nil {
		return 0, err
	}
	return len(b), s.store.PutSnapshot(ctx, a, name, b)
}

// get reads into v what was stored, and gives its size in bytes; 0 if nothing is.
func (s *shelf) get(ctx context.Context, a messages.AgentID, name string, v any) (int, error) {
	b, err := s.store.Snapshot(ctx, a, name)
	if err != nil || b == nil {
		return 0, err
	}
	return len(b), messages.DecodeSnapshot(a, name, b, v)
}
