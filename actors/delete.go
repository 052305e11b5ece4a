package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A delete is done on the mailbox's goroutine, before its sender is answered:
//
//	[what runs and waits ends]   a frame without a command, if there is something
//	commands for others          stored for its children and its parents
//	[agent.deleted]              the tombstone, with how far the removal goes
//	removal                      log, snapshots, blobs, dead letters, key
//
// A delete that is cut off was not answered, so its sender sends it again: the inbox
// keeps it until then. An activation whose newest frame is a tombstone does the removal
// before anything else.

// Purger removes what is kept of an agent beside its log, blobs and snapshots. Safe for
// concurrent use.
type Purger interface {
	// Extent returns the last sequence of the stream of dead letters.
	Extent(ctx context.Context) (letters uint64, err error)
	// Purge removes the agent's dead letters up to that sequence, and its key. Purging
	// again changes nothing. It calls mine between finding the key and removing it, and
	// leaves the key if mine reports false: it may be that of a later life.
	Purge(ctx context.Context, a messages.AgentID, letters uint64, mine func(context.Context) (bool, error)) error
}

// DefaultLease is how long after a deletion an owner that lost the agent's partition may
// still store something of it.
const DefaultLease = 5 * time.Second

// delete ends the agent and removes what is stored of it.
func (a *agent) delete(d *Deliver, c messages.Delete, sender *actor.PID) {
	if err := a.refuseForks(); err != nil {
		a.refuse(d, sender, err)
		return
	}
	env := a.env()
	events, err := a.decide(env, c)
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	ans := messages.Answer{Turn: projections.AnswerOf(&messages.Frame{Events: events}).Turn}
	if len(events) > 0 {
		f := a.frameOf(d, events)
		f.Cause = messages.Cause{Type: c.CommandType(), Endpoint: d.Cause.Endpoint, Reason: c.Reason}
		if a.commitFrame(f, nil); a.broken != nil {
			a.answer(sender, messages.Answer{Err: a.broken})
			return
		}
		c.Last = 0 // it was checked
	}
	upto, err := a.lastMessages()
	if err != nil {
		a.answer(sender, messages.Answer{Err: messages.Refuse(messages.Unavailable, "agent %s is not deleted yet: %v; send the delete again with the same id", a.id, err)})
		return
	}
	env.Upto = &upto
	if events, err = a.decide(env, c); err != nil {
		a.answer(sender, messages.Answer{Err: messages.AsError(err)})
		return
	}
	f := a.frameOf(d, events)
	f.Cause.Digest = "" // a delete under a known id is the same one, whatever its reason
	if a.commitFrame(f, nil); a.broken == nil {
		a.removed(f.Cause, false)
	}
	if ans.N = a.state.Last; a.broken != nil {
		ans = messages.Answer{Err: a.broken}
	}
	a.answer(sender, ans)
}

// lastMessages stores what the agent owes to others and waits for what this node still stores of
// it. It returns how far a removal has to go.
func (a *agent) lastMessages() (upto messages.Extent, err error) {
	ctx, cancel := context.WithTimeout(a.ctx, waitLimit)
	defer cancel()
	for _, e := range a.state.Ends() {
		if m, ok := a.state.Message(a.id, e); ok {
			if err := a.rt.send(ctx, m.To, a.bounded(m.Command)); err != nil {
				return upto, fmt.Errorf("send %s to %s: %w", m.Command.CommandType(), m.To, err)
			}
		}
	}
	return a.rt.extent(ctx, a.id)
}

// extent returns how far a removal has to go, once nothing of the agent is being stored here.
func (rt *Runtime) extent(ctx context.Context, id messages.AgentID) (upto messages.Extent, err error) {
	if err := rt.writers.wait(ctx, id); err != nil {
		return upto, err
	}
	if upto.Blobs, err = rt.store.LastBlob(ctx, id); err != nil {
		return upto, err
	}
	upto.Snapshots, err = rt.store.LastSnapshot(ctx, id)
	if err == nil && rt.purger != nil {
		upto.DeadLetters, err = rt.purger.Extent(ctx)
	}
	return upto, err
}

// removed removes what was stored before the tombstone, which is the newest frame, and does
// so again when the lease time has passed. With bare the log holds no frame before it. If it
// cannot, the agent is broken until the partition has activated it again.
func (a *agent) removed(cause messages.Cause, bare bool) {
	var err error
	if !bare {
		err = a.purge(a.ctx, cause)
	}
	if err == nil || errors.Is(err, eventlog.ErrKept) { // the rest is removed all the same
		err = errors.Join(a.remove(a.state.Life.Deleted.Upto), err)
	}
	if err != nil {
		a.warn("a deleted agent cannot be removed from the store now; it is tried again", "error", err)
		a.broken = messages.Refuse(messages.Unavailable, "agent %s is deleted, and what was stored of it is not all removed yet: %v; try again with the same id", a.id, err)
		a.leave(failed)
		return
	}
	if pause := time.Until(a.tail.Time.Add(a.rt.lease)); pause >= 0 {
		a.late = time.AfterFunc(pause, func() { a.root.Send(a.self, removeLate{}) })
	}
}

// remove removes what was stored beside the log up to upto, and the key. Doing it again
// changes nothing.
func (a *agent) remove(upto messages.Extent) error {
	err := a.rt.store.RemoveSnapshots(a.ctx, a.id, upto.Snapshots)
	if err == nil {
		err = a.rt.store.RemoveBlobs(a.ctx, a.id, upto.Blobs)
	}
	if err == nil && a.rt.purger != nil {
		err = a.rt.purger.Purge(a.ctx, a.id, upto.DeadLetters, a.mine)
	}
	return err
}

// mine reports whether the newest frame is still the one that this owner knows.
func (a *agent) mine(ctx context.Context) (bool, error) {
	tail, err := a.rt.store.Head(ctx, a.id)
	return tail.Frame == a.tail.Frame, err
}

// removeLate removes what an owner that was frozen has stored since the tombstone. An owner
// that came later has written its own frame before it stored anything, so as long as the
// tombstone is the newest frame all of it belongs to the life before.
func (a *agent) removeLate() {
	a.late = nil
	if a.broken != nil || a.state.Life.Deleted == nil {
		return
	}
	upto, err := a.rt.extent(a.ctx, a.id)
	mine := false
	if err == nil {
		mine, err = a.mine(a.ctx)
	}
	if mine && err == nil {
		err = a.remove(upto)
	}
	if err != nil {
		a.warn("what may have been stored late of a deleted agent cannot be removed; `reprise doctor` names it", "error", err)
	}
}

// deleteDamaged deletes an agent whose log cannot be read. What it did cannot be ended in
// order, and its children and its parents are not notified. Forks that are on record before the
// damage refuse it, for those can be read.
func (a *agent) deleteDamaged(d *Deliver, sender *actor.PID) {
	ctx, cancel := context.WithTimeout(a.ctx, waitLimit)
	defer cancel()
	forks, err := a.rt.readableForks(ctx, a.id)
	if err != nil {
		err = messages.Refuse(messages.Unavailable, "whether agent %s has forks cannot be read: %v; send the delete again with the same id", a.id, err)
	} else {
		err = a.refuseForked(forks)
	}
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	upto, err := a.rt.extent(ctx, a.id)
	if err == nil {
		a.tail, err = a.rt.store.Head(ctx, a.id)
	}
	if err == nil {
		err = a.appendTombstone(ctx, d.cause(), messages.AgentDeleted{Reason: d.Command.(messages.Delete).Reason, Upto: upto})
	}
	if err == nil {
		err = a.purge(ctx, d.cause())
	}
	var ans messages.Answer
	switch {
	case err != nil && !errors.Is(err, eventlog.ErrKept): // which the next activation reports
		ans.Err = messages.Refuse(messages.Unavailable, "agent %s is damaged and could not be deleted now: %v; try again with the same id", a.id, err)
	case a.remove(upto) != nil:
		ans.Err = messages.Refuse(messages.Unavailable, "agent %s is deleted, and what was stored of it is not all removed yet: try again with the same id", a.id)
	default:
		ans.N = a.tail.Last
		a.log().Warn("a damaged agent was deleted", "event", ans.N)
	}
	a.answer(sender, ans)
	a.broken = messages.Refuse(messages.Unavailable, "agent %s is being deleted: try again with the same id", a.id)
	a.leave(failed)
}

// purge removes the log before the tombstone, which is the newest frame. If messages stay there
// that cannot be read, the log drops that frame, too: another tombstone is appended.
func (a *agent) purge(ctx context.Context, cause messages.Cause) error {
	err := a.rt.store.Purge(ctx, a.id, a.newest)
	if errors.Is(err, eventlog.ErrStays) {
		del := a.state.Life.Deleted
		return a.appendTombstone(ctx, cause, messages.AgentDeleted{Reason: del.Reason, Upto: del.Upto})
	}
	return err
}

// appendTombstone appends a tombstone after the tail, whatever the log holds before that.
func (a *agent) appendTombstone(ctx context.Context, cause messages.Cause, ev messages.AgentDeleted) error {
	state := turn.State{Last: a.tail.Last}
	f := nextFrame(a.tail, a.epoch, cause, []messages.Event{ev})
	state.Apply(f)
	b, err := messages.EncodeFrame(a.id, f)
	if err != nil {
		return err
	}
	tail, err := eventlog.Commit(ctx, a.rt.store, eventlog.Entry{Agent: a.id, Expect: a.tail, Frame: f, Bytes: b, Summary: Summarize(&state)})
	if err != nil {
		return err
	}
	a.tail, a.newest, a.state = tail, tail.Seq, state
	return nil
}

// purgeDeleted removes what lies before a tombstone that is the agent's newest frame, and reports
// whether it did: damage before that does not matter.
func (rt *Runtime) purgeDeleted(ctx context.Context, id messages.AgentID) bool {
	tail, err := rt.store.Head(ctx, id)
	if err != nil {
		return false
	}
	rec, err := eventlog.First(rt.store.Read(ctx, id, eventlog.From(tail.Last)))
	return err == nil && rec.Frame != nil && eventlog.Ends(rec.Frame) && rt.store.Purge(ctx, id, rec.Seq) == nil
}
