package actors

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// replayed is what an agent is by its log: what a replay of its frames builds up.
type replayed struct {
	state   turn.State
	tail    eventlog.Position
	newest  uint64 // sequence of the newest frame; the tail's may be a foreign message's
	replies replies
	unsaved unsaved
}

// loading is a replay.
type loading struct {
	replayed
	// first is the number of the first event that was read; 0 behind a snapshot.
	first messages.EventNumber
	// last is the newest frame; nil if it is that of the snapshot.
	last *messages.Frame
}

// errEncrypted is the error of frames that cannot be decrypted.
var errEncrypted = errors.New("the frame is encrypted")

// apply folds frames, up to the one that ends with event upto; 0: all. It returns a panic as
// damage: events that cannot be folded must not end the node.
func (l *loading) apply(id messages.AgentID, upto messages.EventNumber, frames iter.Seq2[eventlog.Recorded, error]) error {
	_, err := protect(nil, func() (any, error) {
		for rec, err := range frames {
			if err != nil {
				return nil, err
			}
			if rec.Frame.Encrypted() {
				return nil, errEncrypted
			}
			if l.add(rec); l.tail.Last == upto {
				break
			}
		}
		return nil, nil
	})
	if panicked := (*panicError)(nil); errors.As(err, &panicked) {
		err = &eventlog.DamageError{Agent: id, Seq: l.tail.Seq, Event: l.tail.Last + 1, Err: fmt.Errorf("an event cannot be folded: %v", panicked.value)}
	}
	return err
}

// add folds the next frame.
func (l *loading) add(rec eventlog.Recorded) {
	if l.state.Last == 0 {
		l.first = rec.Frame.First
	}
	l.replies.fold(rec.Frame)
	l.state.Apply(rec.Frame)
	l.unsaved.add(rec.Frame, rec.Size)
	l.tail, l.newest, l.last = rec.Position(), rec.Seq, rec.Frame
}

// load reads the agent and continues what it was doing.
func (a *agent) load() {
	l, err := a.rt.load(a.ctx, a.id, a.epoch, a.ahead)
	if a.ahead = nil; err != nil {
		a.fail(err)
		return
	}
	a.replayed, a.size = l.replayed, 0 // not estimated
	if a.def, err = a.defined(); err != nil {
		a.fail(err)
		return
	}
	if a.tail.Epoch > a.epoch {
		a.log().Warn("an agent was not activated: by its log another node owns it", "newer", a.tail.Epoch)
		a.fenced(a.tail.Epoch)
		return
	}
	if del := a.state.Life.Deleted; del != nil && del.N == a.state.Last {
		if a.removed(l.last.Cause, l.first == del.N); a.broken != nil {
			return
		}
	}
	a.notifyRestored()
	switch {
	case a.tail.Frame != "" && a.tail.Epoch < a.epoch:
		a.resend(l.last)
		a.takeOver()
	case a.state.Open():
		a.recover()
	default:
		a.act() // a paused turn may have timers
	}
}

// load folds the agent's frames; newest was read ahead, or is nil. A log that is shorter than it
// was is read again after rt.electionTimeout, for a leader that has been deposed may have answered.
func (rt *Runtime) load(ctx context.Context, id messages.AgentID, epoch messages.Epoch, newest *eventlog.Newest) (*loading, error) {
	known := rt.newestSeen(id)
	if newest != nil {
		if l, err := rt.loadTo(ctx, newest, epoch, known); err == nil {
			return l, nil
		}
	}
	l, err := rt.loadOnce(ctx, id, epoch, known)
	if rt.electionTimeout == 0 || !errors.Is(err, errShortened) {
		return l, err
	}
	if err := pause(ctx, rt.electionTimeout); err != nil {
		return nil, err
	}
	return rt.loadOnce(ctx, id, epoch, known)
}

// errNotTaken is the error of an agent that cannot be loaded up to a frame that was read ahead.
var errNotTaken = errors.New("the agent is not one to take over, or must be asked for its newest frame")

// loadTo folds the agent's frames up to one that was read ahead. It is for the taker of an
// agent, whose next append shows whether that is the tail: if it is not, the agent is loaded
// again. Any doubt is an error.
func (rt *Runtime) loadTo(ctx context.Context, newest *eventlog.Newest, epoch messages.Epoch, known seen) (*loading, error) {
	l := &loading{}
	if newest.Last >= messages.EventNumber(rt.saveAtEnd) { // else there is most probably no snapshot
		l = rt.restore(ctx, newest.Agent, epoch)
	}
	if err := l.apply(newest.Agent, 0, rt.store.Read(ctx, newest.Agent, eventlog.Range{After: l.tail, Upto: newest})); err != nil {
		return nil, err
	}
	if l.tail.Frame == "" || l.tail.Epoch >= epoch || l.last == nil && l.replies.any() {
		return nil, errNotTaken
	}
	return l, rt.whole(newest.Agent, l.tail, known)
}

// loadOnce folds the agent's frames: those behind its newest snapshot, or, if there is any doubt
// about that, all of them. A log that ends before what is known of it, from the snapshot too, is
// damaged.
func (rt *Runtime) loadOnce(ctx context.Context, id messages.AgentID, epoch messages.Epoch, known seen) (*loading, error) {
	l := rt.restore(ctx, id, epoch)
	snapshot := seen{source: "a snapshot was made at", n: l.tail.Last, seq: l.tail.Seq, at: l.tail.Time}
	if snapshot.n > 0 {
		err := rt.catchUp(ctx, id, l)
		if err == nil && l.tail.Epoch < epoch && l.last == nil && l.replies.any() {
			l.last, err = rt.frameAt(ctx, id, l.tail.Last) // to be sent again
		}
		if err == nil {
			return l, rt.whole(id, l.tail, known)
		}
		rt.logger.Debug("a snapshot does not fit the log; the whole log is read", id.LogAttr(epoch), "error", err)
	}
	l = &loading{}
	err := rt.catchUp(ctx, id, l)
	if damage := new(eventlog.DamageError); errors.As(err, &damage) && rt.purgeDeleted(ctx, id) { // what lies before a tombstone does not matter
		l = &loading{}
		err = rt.catchUp(ctx, id, l)
	}
	if err != nil {
		return nil, err
	}
	return l, rt.whole(id, l.tail, known, snapshot)
}

// catchUp folds the frames behind those that were folded, up to the tail that the log's leader
// names. That is asked for first: the log of a new agent is not read. It takes from the tail what
// no head can be: a foreign message behind it, which the fence must count.
func (rt *Runtime) catchUp(ctx context.Context, id messages.AgentID, l *loading) error {
	tail, err := rt.store.Head(ctx, id)
	if err != nil || tail.Seq == 0 && l.tail.Frame == "" {
		return err
	}
	if err := l.apply(id, 0, rt.store.Read(ctx, id, eventlog.Behind(l.tail))); err != nil {
		return err
	}
	if tail.Frame != l.tail.Frame {
		return messages.Refuse(messages.Unavailable, "agent %s was written to while it was being loaded: try again", id)
	}
	l.tail.Seq = tail.Seq
	return nil
}

// takeOver fences the agent against the writer of its newest frame, and continues in the same
// frame what was begun: many agents that are taken over at once cost one append each.
func (a *agent) takeOver() {
	cause := messages.Cause{Type: messages.CauseTakeover}
	events := a.state.Activate(messages.AgentActivated{Epoch: a.epoch, Previous: a.tail.Epoch, Node: a.rt.node, Host: a.rt.host})
	a.commit(cause, append(events, a.recovery()...), nil)
}

// recovery returns what follows from the loss of what an earlier activation began.
func (a *agent) recovery() []messages.Event {
	a.recovered = a.state.Open()
	if a.def.turn.Unknown() {
		return nil
	}
	events, err := a.decide(a.env(), turn.Recover{})
	if err != nil {
		return nil
	}
	return events
}

// recover continues what an earlier activation under the same epoch began.
func (a *agent) recover() {
	if events := a.recovery(); len(events) > 0 {
		a.commit(messages.Cause{Type: messages.CauseTakeover}, events, nil)
		return
	}
	a.act()
}
