package actors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// loading is what a replay builds up.
type loading struct {
	state   turn.State
	tail    eventlog.Tail
	newest  uint64 // sequence of the newest frame
	owing   owing
	unsaved unsaved
	// first is the number of the first event that was read; 0 behind a snapshot.
	first messages.EventNumber
	// last is the newest frame; nil if a snapshot has told of it.
	last *messages.Frame
}

// apply folds the next frame.
func (l *loading) apply(rec eventlog.Recorded) {
	if l.state.Last == 0 {
		l.first = rec.Frame.First
	}
	l.owing.fold(rec.Frame)
	l.state.Apply(rec.Frame)
	l.unsaved.add(rec.Frame, rec.Size)
	l.tail, l.newest, l.last = rec.Tail(), rec.Seq, rec.Frame
}

// load reads the agent and continues what it was doing.
func (a *agent) load() {
	l, err := a.read()
	if err != nil {
		a.fail(err)
		return
	}
	a.state, a.tail, a.newest, a.owing, a.unsaved = l.state, l.tail, l.newest, l.owing, l.unsaved
	a.size = 0 // not estimated
	if a.tail.Epoch > a.epoch {
		a.rt.logger.Warn("an agent was not activated: its log says that another node owns it", a.id.LogAttr(a.epoch), "newer", a.tail.Epoch)
		a.fenced(a.tail.Epoch)
		return
	}
	if del := a.state.Life.Deleted; del != nil && del.N == a.state.Last {
		if a.removed(l.last.Cause, l.first == del.N); a.broken != nil {
			return
		}
	}
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

// read folds the agent's frames, the first time from what was read ahead.
func (a *agent) read() (*loading, error) {
	known, tip := a.rt.newestSeen(a.id), a.tip
	if a.tip = nil; tip != nil {
		if l, err := a.rt.loadTo(a.ctx, *tip, a.epoch, known); err == nil {
			return l, nil
		}
	}
	return a.rt.loadWhole(a.ctx, a.id, a.epoch, known)
}

// loadTo folds the agent's frames up to a tip that has been read ahead. It is for the
// taker of an agent, whose next append shows whether the tip is the tail: if it is not,
// the agent is loaded again. Any doubt is an error.
func (rt *Runtime) loadTo(ctx context.Context, tip eventlog.Tip, epoch messages.Epoch, known seen) (*loading, error) {
	l := &loading{}
	if tip.Last >= messages.EventNumber(rt.saveAtEnd) { // else there is most probably no snapshot
		if saved, ok := rt.restore(ctx, tip.Agent, epoch); ok {
			l = saved
		}
	}
	if err := replaySafely(l, tip.Agent, rt.log.ReadTo(ctx, tip, l.tail)); err != nil {
		return nil, err
	}
	if l.tail.Frame == "" || l.tail.Epoch >= epoch || l.last == nil && l.owing.any() {
		return nil, errNotTaken
	}
	return l, rt.whole(tip.Agent, l.tail, known)
}

// errNotTaken says that an agent is not loaded by its tip alone.
var errNotTaken = errors.New("the agent is not one to take over, or must be asked for its newest frame")

// load folds the agent's frames: those behind its newest snapshot, or, if there is
// any doubt about that, all of them. A log that ends before what is known of it, from
// the snapshot too, is damaged.
func (rt *Runtime) load(ctx context.Context, id messages.AgentID, epoch messages.Epoch, known seen) (*loading, error) {
	snapshot := seen{source: "a snapshot was made at"}
	if l, ok := rt.restore(ctx, id, epoch); ok {
		snapshot.n, snapshot.seq, snapshot.at = l.tail.Last, l.tail.Seq, l.tail.Time
		err := replaySafely(l, id, rt.log.ReadFrom(ctx, id, l.tail))
		if err == nil {
			var tail eventlog.Tail
			if tail, err = rt.log.Tail(ctx, id); err == nil {
				err = l.reach(id, tail)
			}
		}
		if err == nil && l.tail.Epoch < epoch && l.last == nil && l.owing.any() {
			l.last, err = rt.frameAt(ctx, id, l.tail.Last, l.newest) // to be sent again
		}
		if err == nil {
			return l, rt.whole(id, l.tail, known)
		}
		rt.logger.Debug("a snapshot does not fit the log; the whole log is read", id.LogAttr(epoch), "error", err)
	}
	l, err := rt.replay(ctx, id)
	if err != nil {
		return nil, err
	}
	return l, rt.whole(id, l.tail, known, snapshot)
}

// replay folds all of the agent's frames.
func (rt *Runtime) replay(ctx context.Context, id messages.AgentID) (*loading, error) {
	l, err := rt.replayToTail(ctx, id)
	if damage := new(eventlog.DamageError); errors.As(err, &damage) && rt.uncover(ctx, id) {
		return rt.replayToTail(ctx, id)
	}
	return l, err
}

// replayToTail folds the agent's frames up to the tail, which is asked for first: the log of
// a new agent is not read.
func (rt *Runtime) replayToTail(ctx context.Context, id messages.AgentID) (*loading, error) {
	l := &loading{}
	tail, err := rt.log.Tail(ctx, id)
	if err != nil || tail.Seq == 0 {
		return l, err
	}
	if err := replaySafely(l, id, rt.log.Read(ctx, id, 0)); err != nil {
		return nil, err
	}
	return l, l.reach(id, tail)
}

// replaySafely folds frames, and takes a panic for damage: events that cannot be
// folded must not take the node along.
func replaySafely(l *loading, id messages.AgentID, frames iter.Seq2[eventlog.Recorded, error]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &eventlog.DamageError{Agent: id, Seq: l.tail.Seq, Event: l.tail.Last + 1, Err: fmt.Errorf("an event cannot be folded: %v", p)}
		}
	}()
	for rec, err := range frames {
		if err != nil {
			return err
		}
		l.apply(rec)
	}
	return nil
}

// reach checks that the frames read are all up to the tail that the log's leader names, and
// takes from it what no head can be: a foreign message behind it, which the fence must count.
func (l *loading) reach(id messages.AgentID, tail eventlog.Tail) error {
	if tail.Frame != l.tail.Frame {
		return messages.Refuse(messages.Unavailable, "agent %s was written to while it was being loaded: try again", id)
	}
	l.tail.Seq = tail.Seq
	return nil
}

// takeOver fences the agent against whoever wrote its newest frame, and goes on in
// the same frame with what was begun: a crowd of agents that are taken over at once
// costs one append each.
func (a *agent) takeOver() {
	cause := messages.Cause{Type: "takeover"}
	events := a.state.Activate(messages.AgentActivated{Epoch: a.epoch, Previous: a.tail.Epoch, Node: a.rt.node, Host: a.rt.host})
	a.commit(cause, append(events, a.recovery()...), nil)
}

// recovery is what follows from the loss of what an earlier activation began.
func (a *agent) recovery() []messages.Event {
	a.recovered = a.state.Open()
	if a.def.turn.Unknown {
		return nil
	}
	events, err := a.judge(a.env(), turn.Recover{})
	if err != nil {
		return nil
	}
	return events
}

// recover goes on with what an earlier activation under the same epoch began.
func (a *agent) recover() {
	if events := a.recovery(); len(events) > 0 {
		a.commit(messages.Cause{Type: "takeover"}, events, nil)
		return
	}
	a.act()
}

// readLimit is how long the first answer to a command may take to be read.
const readLimit = time.Minute

// answerAgain answers a command whose id was processed at event n as it was answered then. If
// that was another command, or the same with other content, this one is refused: it was not
// applied.
func (a *agent) answerAgain(sender *actor.PID, d *Deliver, processed *turn.ProcessedError) {
	n := processed.N
	switch {
	case sender == nil:
		return
	case d.Unasked && processed.Same(d.cause().Digest):
		a.answer(sender, messages.Answer{N: n, Duplicate: true})
		return
	}
	root, rt, id, parent := a.root, a.rt, a.id, a.ctx
	rt.dispatcher.run(func() {
		ctx, cancel := context.WithTimeout(parent, readLimit)
		defer cancel()
		ans := rt.firstAnswer(ctx, id, d, n)
		root.Send(sender, &ans)
	})
}

func (rt *Runtime) firstAnswer(ctx context.Context, id messages.AgentID, d *Deliver, n messages.EventNumber) messages.Answer {
	if err := rt.turnToRead(ctx); err != nil {
		return messages.Answer{Err: err}
	}
	defer func() { <-rt.reading }()
	f, err := rt.frameAt(ctx, id, n, 0)
	if err != nil {
		return messages.Answer{Err: messages.Refuse(messages.Unavailable, "the first answer to this id cannot be read: %v", err)}
	}
	if err := sameCommand(f.Cause, d.cause(), n); err != nil {
		return messages.Answer{Err: err}
	}
	ans := messages.AnswerOf(f)
	ans.Duplicate = true
	return ans
}

// sameCommand refuses a command that is not the one which was processed under its id at
// event n.
func sameCommand(was, is messages.Cause, n messages.EventNumber) *messages.Error {
	switch {
	case was.ID != is.ID:
		return messages.Refuse(messages.Conflict, "the id %q cannot be told from %q, which was processed at event %d: choose another id", is.ID, was.ID, n)
	case was.Type != is.Type:
		return messages.Refuse(messages.Conflict, "the id %q was used by another command (%s), at event %d: this %s was not applied; choose another id", is.ID, was.Type, n, is.Type)
	case was.Digest != "" && is.Digest != "" && was.Digest != is.Digest:
		return messages.Refuse(messages.Conflict, "the id %q was used with other content, policy or schedule, at event %d: this %s was not applied; choose another id", is.ID, n, is.Type)
	}
	return nil
}

// turnToRead waits until few enough read beside the work.
func (rt *Runtime) turnToRead(ctx context.Context) *messages.Error {
	select {
	case rt.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return messages.Refuse(messages.Unavailable, "too many ask again for what was answered before: try again with the same id")
	}
}

// frameAt reads the frame that holds event n: at sequence seq, or, if it is not there or seq is
// 0, by the number.
func (rt *Runtime) frameAt(ctx context.Context, id messages.AgentID, n messages.EventNumber, seq uint64) (*messages.Frame, error) {
	if seq > 0 {
		if rec, err := rt.log.FrameAt(ctx, id, seq); err == nil && holds(rec.Frame, n) {
			return rec.Frame, nil
		}
	}
	for rec, err := range rt.log.Read(ctx, id, n) {
		if err != nil {
			return nil, err
		}
		if holds(rec.Frame, n) {
			return rec.Frame, nil
		}
		break // it was purged
	}
	return nil, errors.New("the log does not hold it any more")
}

func holds(f *messages.Frame, n messages.EventNumber) bool { return f.First <= n && n <= f.Last() }
