package actors

import (
	"cmp"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// fail refuses everything from now on with why the agent cannot act. Damage stays until it is
// repaired; anything else is tried again by the next activation.
func (a *agent) fail(err error) {
	var damage *eventlog.DamageError
	switch {
	case a.ctx.Err() != nil:
		a.broken = changingHands(a.id.Partition())
		a.leave(left)
	case errors.As(err, &damage):
		a.broken, a.phase = messages.Refuse(messages.Damaged, "%v; the agent is left untouched", err), damaged
		if errors.Is(err, messages.ErrNewer) {
			a.phase = newer
		}
		a.log().Error("an agent's log is damaged; it is left untouched", "error", err)
	default:
		a.broken = messages.Refuse(messages.Unavailable, "agent %s could not be loaded: %v", a.id, err)
		a.warn("an agent could not be loaded; it is tried again", "error", err)
		a.leave(failed)
		if errors.Is(err, messages.ErrLocked) { // a delete may be what waits in the mailbox
			a.phase = damaged
		}
	}
}

// notAppended gives the agent up: its state holds events that the log does
// not, or may not, have. The next activation reads what is true.
func (a *agent) notAppended(sender *actor.PID, size int, err error) {
	var conflict *eventlog.ConflictError
	var damage *eventlog.DamageError
	var refusal *messages.Error
	switch {
	case errors.As(err, &conflict) && conflict.Actual.Epoch > a.epoch:
		a.log().Warn("a write was refused: another node owns the agent; its work here stops", "newer", conflict.Actual.Epoch)
		a.fenced(conflict.Actual.Epoch)
	case a.ctx.Err() != nil:
		a.broken = messages.Refuse(messages.Unavailable, "agent %s is changing hands and may have applied this or not: try again with the same id", a.id)
		a.leave(left)
	default:
		a.broken = messages.Refuse(messages.Unavailable, "agent %s could not be written to: %v", a.id, err)
		if errors.Is(err, eventlog.ErrTooLarge) {
			refusal = messages.Refuse(messages.TooLarge, "%v", err) // the command's own fault, not that of those behind it
		}
		if size == 0 || errors.As(err, &damage) || errors.Is(err, eventlog.ErrInvalid) { // it would be no frame, each time
			refusal = messages.Refuse(messages.Internal, "agent %s cannot record what follows from this: %v", a.id, err)
		}
		a.warn("an append was refused; the agent is loaded again", "error", err)
		a.leave(failed)
	}
	a.answer(sender, messages.Answer{Err: cmp.Or(refusal, a.broken)})
}

// fenced stops an agent that another node owns.
func (a *agent) fenced(newer messages.Epoch) {
	a.broken = messages.Refuse(messages.Unavailable, "agent %s is owned by another node now (epoch %d): try again", a.id, newer)
	a.observe(func(o Observer) { o.Fenced(a.id, newer) })
	a.leave(left)
}

// panicked refuses the command at hand, whose handling failed by a mistake of this package, and
// has the agent loaded again, for its state may be half changed.
func (a *agent) panicked(err error, sender *actor.PID) {
	a.answer(sender, messages.Answer{Err: messages.Refuse(messages.Internal, "agent %s failed inside while it handled this: %v", a.id, err)})
	a.broken = messages.Refuse(messages.Unavailable, "agent %s failed inside and is loaded again: try again", a.id)
	a.leave(failed)
}

// leave cancels all work and stops the agent behind what is in its mailbox. The next command
// activates it again; if it failed, the partition does so by itself.
func (a *agent) leave(how end) {
	a.stop()
	if a.phase != ending {
		a.phase = ending
		a.backlog.close(how)
		a.root.Poison(a.self)
	}
}

// stop cancels everything outside the mailbox.
func (a *agent) stop() {
	a.cease(nil)
	if a.late != nil {
		a.late.Stop()
		a.late = nil
	}
}
