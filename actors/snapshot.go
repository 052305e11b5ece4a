package actors

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// saved is a snapshot of an agent: what a replay of its frames up to Tail builds
// up. It is never trusted more than the log: one that does not fit is rebuilt.
type saved struct {
	Tail    eventlog.Tail     `json:"tail"`
	Image   turn.Image        `json:"image"`
	Replies map[string]string `json:"replies"`
	Ended   []string          `json:"ended"`
	// Scheduled is that of owing.
	Scheduled bool `json:"scheduled"`
}

const (
	// DefaultSnapshotEvery is how many events an agent writes between two
	// snapshots, at least.
	DefaultSnapshotEvery = 128
	// An agent that leaves memory is worth a snapshot with fewer, and with a smaller
	// part of what the last one took: to read a frame of the tail, when it comes
	// back, takes as long as to read 20 KB of a snapshot.
	snapshotAtEnd      = 16
	snapshotShareAtEnd = 8 // of snapshotShare
	// savesAtOnce is how many snapshots a node writes at the same time. Another
	// one is not waited for, but skipped.
	savesAtOnce = 4
	saveLimit   = time.Minute
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
	// under says that one is being written.
	under bool
}

func (u *unsaved) add(f *messages.Frame, bytes int) {
	if eventlog.Ends(f) { // the snapshot is gone, too
		*u = unsaved{under: u.under}
	}
	u.events += len(f.Events)
	u.bytes += bytes
}

// due says whether a snapshot is to be written that is worth so many events.
func (u *unsaved) due(events, share int) bool {
	return !u.under && u.events >= events && u.bytes >= u.size/share
}

// savedAs says what came of the writing of a snapshot.
type savedAs struct {
	size int
	err  error
}

// save leaves a snapshot if at least so many events have come since the last one,
// which take together that share of its size, and no other is being written. The
// state must be as the log has it. The mailbox only takes the image; the rest is
// done beside it, and may end after the agent has gone: a snapshot that comes late
// replaces a newer one at worst, and costs the next activation the reading of a
// longer tail. A deleted agent leaves none, for nothing would remove it, and neither does
// one on a node that may not act: its owner may have deleted it. What is stored late all
// the same the owner removes when the lease time has passed, and no activation uses it,
// because the log does not hold its tail.
func (a *agent) save(events, share int) {
	u := &a.unsaved
	if a.rt.saves == nil || a.state.Life.Deleted != nil || !u.due(events, share) || !a.rt.may() {
		return
	}
	select {
	case a.rt.saving <- struct{}{}:
	default:
		return
	}
	tail := a.tail
	tail.Seq = a.newest // behind it may be foreign messages
	s, err := snapshotOf(&a.state, tail, &a.owing)
	*u = unsaved{size: u.size, under: true}
	rt, id, root, self := a.rt, a.id, a.root, a.self
	written := rt.writers.begin(id)
	rt.dispatcher.run(func() {
		defer func() { <-rt.saving }()
		defer written()
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		defer cancel()
		m := savedAs{err: err}
		if m.err == nil {
			m.size, m.err = rt.saves.put(ctx, id, turn.SnapshotName(), s)
		}
		root.Send(self, m)
	})
}

// snapshotOf is a snapshot that shares with what it is taken of only what does not
// change.
func snapshotOf(state *turn.State, tail eventlog.Tail, owed *owing) (*saved, error) {
	im, err := state.Image()
	return &saved{Tail: tail, Image: im, Replies: maps.Clone(owed.subjects), Ended: owed.ended, Scheduled: owed.scheduled}, err
}

func (a *agent) saved(m savedAs) {
	a.unsaved.under = false
	if m.err != nil { // another one is tried when it is due
		a.rt.limited.warn(a.rt.logger, "a snapshot could not be written; the agent is loaded from an older one or from its whole log", a.id.LogAttr(a.epoch), "error", m.err)
		return
	}
	a.unsaved.size = m.size
	a.rest(a.rt.saveEvery, snapshotShare) // it may be due again
}

// restore begins a loading with the newest snapshot, and says whether there is
// one that can be read. What is wrong with one is not worth more than a line for
// who looks for it: the log has it all.
func (rt *Runtime) restore(ctx context.Context, id messages.AgentID, epoch messages.Epoch) (l *loading, ok bool) {
	if rt.saves == nil {
		return nil, false
	}
	defer func() {
		if p := recover(); p != nil {
			rt.logger.Debug("a snapshot cannot be used", id.LogAttr(epoch), "panic", fmt.Sprint(p))
			ok = false
		}
	}()
	var s saved
	size, err := rt.saves.get(ctx, id, turn.SnapshotName(), &s)
	if size == 0 && err == nil {
		return nil, false
	}
	if err == nil {
		l, err = s.loading(size)
	}
	if err != nil {
		rt.logger.Debug("a snapshot cannot be used", id.LogAttr(epoch), "error", err)
		return nil, false
	}
	return l, true
}

// loading is where the reading of the log goes on.
func (s *saved) loading(size int) (*loading, error) {
	state, err := s.Image.State()
	if err != nil {
		return nil, err
	}
	s.Tail.Time = s.Tail.Time.UTC()
	if state.Last != s.Tail.Last || s.Tail.Last == 0 {
		return nil, fmt.Errorf("the state is as of event %d, the snapshot as of %d", state.Last, s.Tail.Last)
	}
	return &loading{
		state: *state, tail: s.Tail, newest: s.Tail.Seq,
		owing: owing{s.Replies, s.Ended, s.Scheduled}, unsaved: unsaved{size: size},
	}, nil
}
