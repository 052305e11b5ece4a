package actors

import (
	"context"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Snapshots are written regardless of the size of the last one.
func init() { snapshotShare = 1 << 30 }

// Activation is the result of a load.
type Activation struct {
	State   *turn.State
	Tail    any
	Replies map[string]string
	Ended   []string
	// Scheduled reports whether a report of a scheduled input is undelivered.
	Scheduled bool
	// Resumed reports whether the load started from a snapshot.
	Resumed bool
}

// Load loads an agent; whole ignores its snapshots.
func (r *Runtime) Load(ctx context.Context, a messages.AgentID, whole bool) (Activation, error) {
	l := &loading{}
	var err error
	if whole {
		err = r.catchUp(ctx, a, l)
	} else {
		l, err = r.load(ctx, a, 0, nil)
	}
	if err != nil {
		return Activation{}, err
	}
	return Activation{
		State: &l.state, Tail: l.tail, Replies: l.replies.Subjects, Ended: l.replies.Ended, Scheduled: l.replies.Scheduled,
		Resumed: l.unsaved.size > 0,
	}, nil
}

// SnapshotOf returns the number of the newest event in a snapshot, or 0 if it cannot be read.
func SnapshotOf(a messages.AgentID, b []byte) messages.EventNumber {
	var s saved
	if messages.DecodeSnapshot(a, turn.SnapshotName(), b, &s) != nil {
		return 0
	}
	return s.Tail.Last
}

// SnapshotBytes returns the bytes that are written to snapshots of an agent whose log and
// snapshot grow by the given bytes with each event.
func SnapshotBytes(events, log, snapshot int) (written int) {
	u, size := unsaved{}, 0
	for range events {
		u.events, u.bytes, size = u.events+1, u.bytes+log, size+snapshot
		if u.due(DefaultSnapshotEvery, 4) {
			written += size
			u = unsaved{size: size}
		}
	}
	return written
}

// SaveEach stores a snapshot as of each frame of an agent.
func (r *Runtime) SaveEach(ctx context.Context, a messages.AgentID) error {
	l := &loading{}
	for rec, err := range r.store.Read(ctx, a, eventlog.Range{}) {
		if err != nil {
			return err
		}
		l.add(rec)
		s, err := snapshotOf(&l.state, l.tail, &l.replies)
		if err != nil {
			return err
		}
		if _, err := r.putSnapshot(ctx, a, s); err != nil {
			return err
		}
	}
	return nil
}
