package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

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
		ctx, cancel := context.WithTimeout(parent, sideLimit)
		defer cancel()
		ans := rt.firstAnswer(ctx, id, d, n)
		root.Send(sender, &ans)
	})
}

func (rt *Runtime) firstAnswer(ctx context.Context, id messages.AgentID, d *Deliver, n messages.EventNumber) messages.Answer {
	if rt.reading.Acquire(ctx, 1) != nil {
		return messages.Answer{Err: messages.Refuse(messages.Unavailable, "too many ask again for what was answered before: try again with the same id")}
	}
	defer rt.reading.Release(1)
	f, err := rt.frameAt(ctx, id, n)
	if err != nil {
		return messages.Answer{Err: messages.Refuse(messages.Unavailable, "the first answer to this id cannot be read: %v", err)}
	}
	if err := sameCommand(f.Cause, d.cause(), n); err != nil {
		return messages.Answer{Err: err}
	}
	ans := projections.AnswerOf(f)
	ans.Duplicate = true
	return ans
}

// sameCommand refuses a command that is not the one which was processed under its id at
// event n.
func sameCommand(was, is messages.Cause, n messages.EventNumber) *messages.Error {
	switch {
	case was.Endpoint == "":
		return messages.Refuse(messages.Conflict, "the id %q is that of a scheduled input, which was accepted at event %d and has not ended yet: this %s was not applied; choose another id", is.ID, n, is.Type)
	case was.ID != is.ID:
		return messages.Refuse(messages.Conflict, "the id %q has the hash of %q, which was processed at event %d: choose another id", is.ID, was.ID, n)
	case was.Type != is.Type:
		return messages.Refuse(messages.Conflict, "the id %q was used by another command (%s), at event %d: this %s was not applied; choose another id", is.ID, was.Type, n, is.Type)
	case was.Digest != "" && is.Digest != "" && was.Digest != is.Digest:
		return messages.Refuse(messages.Conflict, "the id %q was used with other content, policy or schedule, at event %d: this %s was not applied; choose another id", is.ID, n, is.Type)
	}
	return nil
}

// frameAt reads the frame that holds event n.
func (rt *Runtime) frameAt(ctx context.Context, id messages.AgentID, n messages.EventNumber) (*messages.Frame, error) {
	rec, err := eventlog.First(rt.store.Read(ctx, id, eventlog.From(n)))
	switch f := rec.Frame; {
	case err != nil:
		return nil, err
	case f == nil || n < f.First: // it was purged
		return nil, errors.New("the log does not hold it any more")
	default:
		return f, nil
	}
}
