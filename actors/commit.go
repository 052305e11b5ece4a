package actors

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// commit appends events, which the state has already folded, as one frame.
// Until the log has answered the agent is busy: nothing is decided, begun or
// answered.
func (a *agent) commit(cause messages.Cause, events []messages.Event, sender *actor.PID) {
	now := time.Now().UTC()
	if now.Before(a.tail.Time) {
		now = a.tail.Time
	}
	f := &messages.Frame{
		ID: messages.FrameID(ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String()), Epoch: a.epoch,
		First: a.tail.Last + 1, Prev: a.tail.Frame, PrevDigest: a.tail.Digest,
		Time: now, Cause: cause, Events: events,
	}
	a.ids.add(a.state.Spend(f))
	a.busy = true
	a.flight = flight{frame: f, replies: a.repliesTo(f), sender: sender}
	b, err := messages.EncodeFrame(a.id, f)
	entry := eventlog.Entry{Agent: a.id, Expect: a.tail, Frame: f, Bytes: b, Summary: a.summary()}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	log, root, self := a.rt.log, a.root, a.self
	go func() {
		defer cancel()
		m := appended{err: err}
		if err == nil {
			m.tail, m.err = eventlog.Commit(ctx, log, entry)
		}
		root.Send(self, m)
	}()
}

func (a *agent) summary() eventlog.Summary {
	s := eventlog.Summary{Phase: eventlog.Phase(a.state.Phase()), Open: a.state.Open(), Due: a.state.Due()}
	if t := a.state.Turn; t != nil {
		s.Turn = t.ID
	}
	return s
}

// repliesTo lists what the frame's events owe to subjects that inputs named.
func (a *agent) repliesTo(f *messages.Frame) []Reply {
	var list []Reply
	for i, ev := range f.Events {
		n := f.First + messages.EventNumber(i)
		if in, ok := ev.(messages.InputAccepted); ok && in.Reply != "" {
			if a.replies == nil {
				a.replies = make(map[string]string)
			}
			a.replies[in.Input] = in.Reply
			list = append(list, Reply{a.id, in.Reply, in.Input, n, f.Time, ev})
		}
		for _, input := range endedBy(ev) {
			if subject, ok := a.replies[input]; ok {
				list = append(list, Reply{a.id, subject, input, n, f.Time, ev})
				delete(a.replies, input)
			}
		}
	}
	return list
}

func (a *agent) appended(ctx actor.Context, m appended) {
	if m.err != nil {
		a.notAppended(m.err)
		return
	}
	a.busy = false
	a.tail = m.tail
	fl := a.flight
	a.flight = flight{}
	a.rt.observer.Committed(Commit{Agent: a.id, Seq: m.tail.Seq, Frame: fl.frame, Phase: a.state.Phase()})
	if len(fl.replies) > 0 {
		a.rt.observer.Owed(fl.replies)
	}
	if fl.sender != nil {
		a.answer(fl.sender, answerOf(fl.frame))
	}
	a.act()
	a.drain()
}

// notAppended gives the agent up: its state holds events that the log does
// not, or may not, have. The next activation reads what is true.
func (a *agent) notAppended(err error) {
	var conflict *eventlog.ConflictError
	switch {
	case errors.As(err, &conflict) && conflict.Actual.Epoch > a.epoch:
		a.fenced(conflict.Actual.Epoch)
	case errors.Is(err, context.Canceled):
		return // stopping
	default:
		a.broken = messages.Refuse(messages.Unavailable, "agent %s could not be written to: %v", a.id, err)
		if errors.Is(err, eventlog.ErrTooLarge) {
			a.broken = messages.Refuse(messages.TooLarge, "%v", err)
		}
		a.rt.logger.Warn("an append was refused; the agent is loaded again", "agent", a.id.String(), "error", err)
		a.leave()
	}
	a.busy = false
	if a.flight.sender != nil {
		a.answer(a.flight.sender, Answer{Err: a.broken})
	}
	a.flight = flight{}
	a.drain()
}

// resend hands over the replies of the newest frame again: the owner before us
// may have died between the append and the sending.
func (a *agent) resend(f *messages.Frame) {
	if replies := a.repliesTo(f); len(replies) > 0 {
		a.rt.observer.Owed(replies)
	}
}
