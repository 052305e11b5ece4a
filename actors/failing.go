package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// fail answers everything from now on with why the agent cannot act. Damage
// stays until somebody mends it; anything else is tried again by the next
// activation.
func (a *agent) fail(err error) {
	var damage *eventlog.DamageError
	switch {
	case a.left: // and broken says why
	case errors.As(err, &damage):
		a.broken, a.damaged = messages.Refuse(messages.Damaged, "%v; the agent is left untouched", err), !errors.Is(err, messages.ErrNewer)
		a.rt.logger.Error("an agent's log is damaged; it is left untouched", a.id.LogAttr(a.epoch), "error", err)
	case errors.Is(err, messages.ErrLocked) && a.toBeDeleted():
		a.broken, a.damaged = messages.Refuse(messages.Unavailable, "agent %s could not be loaded: %v", a.id, err), true
	default:
		a.broken = messages.Refuse(messages.Unavailable, "agent %s could not be loaded: %v", a.id, err)
		a.rt.limited.warn(a.rt.logger, "an agent could not be loaded; it is tried again", a.id.LogAttr(a.epoch), "error", err)
		a.leave(true)
	}
}

// toBeDeleted says that a delete waits that does not depend on what the agent did.
func (a *agent) toBeDeleted() bool {
	return slices.ContainsFunc(a.waiting, func(arr arrival) bool {
		d, is := arr.message.(*Deliver)
		return is && deletesAnyhow(d.Command)
	})
}

func deletesAnyhow(c messages.Command) bool {
	d, is := c.(messages.Delete)
	return is && d.Last == 0
}

// notAppended gives the agent up: its state holds events that the log does
// not, or may not, have. The next activation reads what is true.
func (a *agent) notAppended(err error) {
	fl := a.flight
	a.flight, a.busy = flight{}, false
	var conflict *eventlog.ConflictError
	var damage *eventlog.DamageError
	var refusal *messages.Error
	switch {
	case errors.As(err, &conflict) && conflict.Actual.Epoch > a.epoch:
		a.rt.logger.Warn("a write was refused: another node owns the agent; its work here stops", a.id.LogAttr(a.epoch), "newer", conflict.Actual.Epoch)
		a.fenced(conflict.Actual.Epoch)
	case a.left && errors.Is(err, context.Canceled): // and broken says why
	default:
		a.broken = messages.Refuse(messages.Unavailable, "agent %s could not be written to: %v", a.id, err)
		if errors.Is(err, eventlog.ErrTooLarge) {
			if fl.size <= eventlog.MaxFrame { // the server's limit, not ours
				a.rt.refused(fl.size)
			}
			refusal = messages.Refuse(messages.TooLarge, "%v", err) // the command's own fault, not that of those behind it
		}
		if fl.size == 0 || errors.As(err, &damage) { // it would be no frame, each time
			refusal = messages.Refuse(messages.Internal, "agent %s cannot record what follows from this: %v", a.id, err)
		}
		a.rt.limited.warn(a.rt.logger, "an append was refused; the agent is loaded again", a.id.LogAttr(a.epoch), "error", err)
		a.leave(true)
	}
	if refusal == nil {
		refusal = a.broken
	}
	a.answer(fl.sender, messages.Answer{Err: refusal})
	a.drain()
}

// fenced stops an agent that somebody else owns.
func (a *agent) fenced(newer messages.Epoch) {
	a.broken = messages.Refuse(messages.Unavailable, "agent %s is owned by another node now (epoch %d): try again", a.id, newer)
	a.tell(func(o Observer) { o.Fenced(a.id, newer) })
	a.leave(false)
}

// survive ends a panic in the handling of a message, which is a mistake of
// ours: the command at hand is refused, and the agent is loaded again, for its
// state may be half changed.
func (a *agent) survive() {
	p := recover()
	if p == nil {
		return
	}
	a.rt.logger.Error("an agent panicked; it is loaded again", a.id.LogAttr(a.epoch), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if !a.busy {
		a.answer(a.asking, messages.Answer{Err: messages.Refuse(messages.Internal, "agent %s failed inside while it handled this: %v", a.id, p)})
	}
	a.asking = nil
	a.broken = messages.Refuse(messages.Unavailable, "agent %s failed inside and is loaded again: try again", a.id)
	a.leave(true)
	a.drain()
}

// leave cancels all work and asks the partition to let the agent go. The next
// message activates it anew; with again, the partition does so by itself,
// because the agent may owe work.
func (a *agent) leave(again bool) {
	a.stop()
	if !a.left {
		a.left = true
		a.root.Send(a.parent, leaving{a.id, again})
	}
}

// stop cancels everything outside the mailbox.
func (a *agent) stop() {
	for _, cancel := range a.running {
		cancel()
	}
	a.running = nil
	if a.cancel != nil {
		a.cancel()
	}
}

// turnAway answers everybody who still waits when the agent stops.
func (a *agent) turnAway() {
	refusal := messages.Refuse(messages.Unavailable, "agent %s is changing hands and may have applied this or not: try again with the same id", a.id)
	a.answer(a.flight.sender, messages.Answer{Err: refusal})
	for _, arr := range a.waiting {
		a.answer(arr.sender, messages.Answer{Err: refusal})
	}
	a.flight, a.waiting = flight{}, nil
}
