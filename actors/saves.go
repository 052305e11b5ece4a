package actors

import (
	"context"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// saves is the one way of snapshots to their store and back: whoever wants to
// change their bytes does it here.
type saves struct{ store eventlog.Snapshots }

// put stores v and gives its size in bytes.
func (s *saves) put(ctx context.Context, a messages.AgentID, name string, v any) (int, error) {
	b, err := messages.EncodeSnapshot(a, name, v)
	if err != nil {
		return 0, err
	}
	return len(b), s.store.PutSnapshot(ctx, a, name, b)
}

// get reads into v what was stored, and gives its size in bytes; 0 if nothing is.
func (s *saves) get(ctx context.Context, a messages.AgentID, name string, v any) (int, error) {
	b, err := s.store.Snapshot(ctx, a, name)
	if err != nil || b == nil {
		return 0, err
	}
	return len(b), messages.DecodeSnapshot(a, name, b, v)
}
