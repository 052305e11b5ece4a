package actors

import (
	"context"
	"fmt"
	"maps"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// saved is a snapshot of an agent: what a replay of its frames up to Tail builds up. It is never
// trusted more than the log: one that does not fit is rebuilt.
type saved struct {
	Tail    eventlog.Position `json:"tail"`
	State   turn.Snapshot     `json:"state"`
	Replies replies           `json:"replies"`
}

const (
	// DefaultSnapshotEvery is how many events an agent writes between two
	// snapshots, at least.
	DefaultSnapshotEvery = 128
	// An agent that leaves memory is worth a snapshot with fewer, and with a smaller
	// part of what the last one took: to read a frame behind it, when the agent comes
	// back, takes as long as to read 20 KB of a snapshot.
	snapshotAtEnd      = 16
	snapshotShareAtEnd = 8 // of snapshotShare
	// savesAtOnce is how many snapshots a node writes at the same time. Another
	// one is not waited for, but skipped.
	savesAtOnce = 4
)

// snapshotShare is what part of the last snapshot's size the frames behind it
// have together before another one is written: what snapshots take stays in
// proportion to the log.
var snapshotShare = 4 // larger in tests

// unsaved counts what has come since the newest snapshot.
type unsaved struct {
	events int
	bytes  int
	// size is that of the snapshot, in bytes; 0 if there is none.
	size int
	// writing reports that one is being written.
	writing bool
}

func (u *unsaved) add(f *messages.Frame, bytes int) {
	if eventlog.Ends(f) { // the snapshot is gone, too
		*u = unsaved{writing: u.writing}
	}
	u.events += len(f.Events)
	u.bytes += bytes
}

// due reports whether a snapshot is to be written that is worth so many events.
func (u *unsaved) due(events, share int) bool {
	return !u.writing && u.events >= events && u.bytes >= u.size/share
}

// savedAs reports the writing of a snapshot.
type savedAs struct {
	size int
	err  error
}

// save writes a snapshot if at least so many events have come since the last one, which take
// together that share of its size, and no other is being written. The state must be as the log
// has it. The mailbox only copies the state; the rest is done beside it, and may end after the
// agent has stopped: a snapshot that comes late replaces a newer one at worst, and then the next
// activation reads more frames. A deleted agent writes none, for nothing would remove it, and
// neither does one on a node that may not act: its owner may have deleted it. What is stored
// late all the same the owner removes when the lease time has passed, and no activation uses it,
// because the log does not hold its tail.
func (a *agent) save(events, share int) {
	u := &a.unsaved
	if a.broken != nil || a.rt.saveEvery < 0 || a.state.Life.Deleted != nil || !u.due(events, share) || !a.rt.may() || !a.rt.saving.TryAcquire(1) {
		return
	}
	tail := a.tail
	tail.Seq = a.newest // behind it may be foreign messages
	s, err := snapshotOf(&a.state, tail, &a.replies)
	*u = unsaved{size: u.size, writing: true}
	rt, id, root, self := a.rt, a.id, a.root, a.self
	written := rt.writers.begin(id)
	rt.dispatcher.run(func() {
		defer rt.saving.Release(1)
		defer written()
		m := savedAs{err: err}
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), sideLimit)
			defer cancel()
			m.size, m.err = rt.putSnapshot(ctx, id, s)
		}
		root.Send(self, m)
	})
}

// snapshotOf returns a snapshot that shares with the state only what does not change.
func snapshotOf(state *turn.State, tail eventlog.Position, r *replies) (*saved, error) {
	im, err := state.Snapshot()
	return &saved{tail, im, replies{Subjects: maps.Clone(r.Subjects), Ended: r.Ended, Scheduled: r.Scheduled, Streams: maps.Clone(r.Streams)}}, err
}

// putSnapshot stores a snapshot and returns its size in bytes.
func (rt *Runtime) putSnapshot(ctx context.Context, id messages.AgentID, s *saved) (int, error) {
	b, err := messages.EncodeSnapshot(id, turn.SnapshotName(), s)
	if err != nil {
		return 0, err
	}
	return len(b), rt.store.PutSnapshot(ctx, id, turn.SnapshotName(), b)
}

func (a *agent) saved(m savedAs) {
	a.unsaved.writing = false
	if m.err != nil { // another one is tried when it is due
		a.warn("a snapshot could not be written; the agent is loaded from an older one or from its whole log", "error", m.err)
		return
	}
	a.unsaved.size = m.size
	a.save(a.rt.saveEvery, snapshotShare) // it may be due again
}

// restore begins a loading with the newest snapshot, or with nothing if there is none that can be
// read. That is only logged at debug: the log has everything.
func (rt *Runtime) restore(ctx context.Context, id messages.AgentID, epoch messages.Epoch) *loading {
	if rt.saveEvery < 0 {
		return &loading{}
	}
	b, err := rt.store.Snapshot(ctx, id, turn.SnapshotName())
	if err == nil && b != nil {
		var l *loading
		if l, err = protect(nil, func() (*loading, error) { return decodeSnapshot(id, b) }); err == nil {
			return l
		}
	}
	if err != nil {
		rt.logger.Debug("a snapshot cannot be used", id.LogAttr(epoch), "error", err)
	}
	return &loading{}
}

// decodeSnapshot returns what is to be continued by the frames behind a snapshot.
func decodeSnapshot(id messages.AgentID, b []byte) (*loading, error) {
	var s saved
	if err := messages.DecodeSnapshot(id, turn.SnapshotName(), b, &s); err != nil {
		return nil, err
	}
	state, err := s.State.State()
	if err != nil {
		return nil, err
	}
	s.Tail.Time = s.Tail.Time.UTC()
	if state.Last != s.Tail.Last || s.Tail.Last == 0 {
		return nil, fmt.Errorf("the state is as of event %d, the snapshot as of %d", state.Last, s.Tail.Last)
	}
	return &loading{replayed: replayed{
		state: *state, tail: s.Tail, newest: s.Tail.Seq,
		replies: s.Replies, unsaved: unsaved{size: len(b)},
	}}, nil
}
