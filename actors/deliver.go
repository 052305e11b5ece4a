package actors

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// deliver applies a command, or refuses it.
func (a *agent) deliver(d *Deliver, sender *actor.PID) {
	del, deletes := d.Command.(messages.Delete)
	if err := a.refuses(d); err != nil {
		if err == a.broken && a.phase == damaged && deletes && del.Last == 0 {
			a.deleteDamaged(d, sender)
			return
		}
		a.answer(sender, messages.Answer{N: a.state.Last, Err: err})
		return
	}
	d, err := a.offloaded(d)
	if err != nil {
		a.answer(sender, messages.Answer{Err: messages.AsError(err)})
		return
	}
	switch c := d.Command.(type) {
	case messages.Delete:
		a.delete(d, c, sender)
	case messages.Fork:
		a.fork(d, c, sender)
	case messages.BeginFork:
		a.beginFork(d, c, sender)
	case messages.Import:
		a.importLog(d, c, sender)
	case messages.Detach:
		a.detach(d, c, sender)
	default:
		a.execute(d, sender)
	}
}

// refuses returns why a command cannot be given to the machine. Nil: it can.
func (a *agent) refuses(d *Deliver) *messages.Error {
	name := d.Command.CommandType()
	switch deleted := a.state.Life.DeletedAt; {
	case a.ctx.Err() != nil: // what is not begun must not be applied
		return changingHands(a.id.Partition())
	case !d.Deadline.IsZero() && !time.Now().Before(d.Deadline):
		return messages.Refuse(messages.Unavailable, "the time for this %s was over (%s) when agent %s came to it: ask again with the same id", name, d.Deadline.UTC().Format(time.RFC3339), a.id)
	case !d.Sent.IsZero() && d.Sent.Before(deleted):
		return messages.Refuse(messages.Unavailable, "agent %s was deleted (%s), and this %s may have been sent before that: ask again with the same id if it is still wanted", a.id, deleted.UTC().Format(time.RFC3339Nano), name)
	case a.broken != nil:
		return a.broken
	}
	return a.rt.fits(d.Command)
}

// offloaded returns d with what is too large for a frame stored beside the log. A command that is
// refused, or not awaited, is left as it is.
func (a *agent) offloaded(d *Deliver) (*Deliver, error) {
	switch c := d.Command.(type) {
	case messages.Input:
		if a.rt.offloads(c) && a.state.Refuses(a.env(), c) == nil {
			return a.offloadInput(d, c)
		}
	case messages.Report:
		if c.Blob != nil && a.state.Awaits(c) && !a.def.turn.Unknown() {
			return a.copyAnswer(d, c)
		}
	}
	return d, nil
}

// execute passes a command to the machine and appends what follows.
func (a *agent) execute(d *Deliver, sender *actor.PID) {
	env := a.env()
	env.Person, env.Trace = d.Cause.Person(), d.Trace
	events, err := a.decide(env, a.succession.bind(d))
	if err != nil {
		a.refuse(d, sender, err)
		return
	}
	a.commitFrame(a.frameOf(d, events), sender)
	if _, ok := d.Command.(messages.CancelChild); ok && a.broken == nil {
		a.reportAgain(d.Command)
	}
}

// refuse answers a command with the machine's error: one that was processed before as it was
// answered then.
func (a *agent) refuse(d *Deliver, sender *actor.PID, err error) {
	var processed *turn.ProcessedError
	if errors.As(err, &processed) {
		a.answerAgain(sender, d, processed)
		a.reportAgain(d.Command)
		return
	}
	a.answer(sender, messages.Answer{Err: messages.AsError(err)})
}

// answer sends an answer, if it is awaited.
func (a *agent) answer(sender *actor.PID, ans messages.Answer) {
	if sender != nil {
		a.root.Send(sender, &ans)
	}
}
