package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// commit appends events, which the state has already folded, as one frame, see commitFrame.
func (a *agent) commit(cause messages.Cause, events []messages.Event, sender *actor.PID) {
	a.commitFrame(nextFrame(a.tail, a.epoch, cause, events), sender)
}

// commitFrame appends a frame, which the state has already folded, and does what follows from
// it. Until the log has answered nothing is decided, begun or
// answered: the agent's mailbox waits.
func (a *agent) commitFrame(f *messages.Frame, sender *actor.PID) {
	a.state.Record(f)
	a.replies.fold(f)
	a.cease(a.state.Effects())
	owed := a.repliesTo(f)
	tail := a.tail
	b, err := messages.EncodeFrame(a.id, f)
	if err == nil {
		err = a.ctx.Err() // what an effect made of its cancellation is no outcome
	}
	if err == nil {
		entry := eventlog.Entry{Agent: a.id, Expect: a.tail, Frame: f, Bytes: b, Summary: Summarize(&a.state)}
		entry.Summary.Replies = len(owed)+len(a.replies.Streams) > 0
		appending := stalling{a, sender, time.Now().Add(stallAfter)}
		tail, err = eventlog.Commit(a.ctx, a.rt.store.Log, entry, appending.tried)
		sender = appending.sender
		a.backlog.stall(nil)
	}
	if err != nil {
		a.notAppended(sender, len(b), err)
		return
	}
	a.tail, a.newest = tail, tail.Seq
	a.appended(f, len(b), owed, sender)
}

// nextFrame returns the frame that follows tail.
func nextFrame(tail eventlog.Position, epoch messages.Epoch, cause messages.Cause, events []messages.Event) *messages.Frame {
	now := time.Now().UTC()
	if now.Before(tail.Time) {
		now = tail.Time
	}
	return &messages.Frame{
		ID: messages.FrameID(ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String()), Epoch: epoch,
		First: tail.Last + 1, Prev: tail.Frame, PrevDigest: tail.Digest,
		Time: now, Cause: cause, Events: events,
	}
}

// frameOf returns the frame of what follows from a command.
func (a *agent) frameOf(d *Deliver, events []messages.Event) *messages.Frame {
	f := nextFrame(a.tail, a.epoch, d.cause(), events)
	f.Trace = d.Trace
	return f
}

// stallAfter is how long an append may go unanswered before the sender of the command gets
// the reason.
const stallAfter = 3 * time.Second

// stalling is an append that may take too long.
type stalling struct {
	a      *agent
	sender *actor.PID // awaits its answer; nil: no one does, or it was refused
	next   time.Time  // when it is reported
}

// tried reports an append that has been tried again for a while, and now and then from there on.
func (s *stalling) tried(err error) {
	if time.Now().After(s.next) {
		s.next = time.Now().Add(10 * stallAfter)
		s.a.stalled(s.sender, err)
		s.sender = nil
	}
}

// stalled refuses the command whose append takes too long, and all that come until it ends.
// The append is tried until the log answers; what was asked for under an id may be asked for
// again.
func (a *agent) stalled(sender *actor.PID, err error) {
	a.releaseToken() // its activation must not keep others waiting
	a.warn("the log does not take a frame; it is tried until it does", "error", err)
	why := messages.Refuse(messages.Unavailable, "agent %s cannot write to its log now (%v): try again with the same id", a.id, err)
	a.backlog.stall(why)
	a.answer(sender, messages.Answer{Err: why})
}

// Summarize returns what the headers of a frame hold of the agent's state.
func Summarize(s *turn.State) eventlog.Summary {
	sum := eventlog.Summary{Phase: s.Phase(), Open: s.Open(), Due: s.Due(), Waiting: len(s.Waiting())}
	if s.Turn != nil {
		sum.Turn = s.Turn.ID
	}
	if s.Ended != nil && s.Ended.Phase == projections.Failed {
		sum.Failed = s.Ended.Why()
	}
	return sum
}

// repliesTo returns what the frame's events, which are folded, owe to subjects that inputs
// named.
func (a *agent) repliesTo(f *messages.Frame) []Reply {
	var list []Reply
	for i, ev := range f.Events {
		n := f.First + messages.EventNumber(i)
		owe := func(input string) {
			if subject, ok := a.replies.Subjects[input]; ok {
				list = append(list, Reply{a.id, subject, input, n, f.Time, ev})
			}
		}
		if !messages.Is(ev.EventType(), messages.Replied) {
			if subject, input := projections.ReplyOf(ev); subject != "" { // it comes later
				list = append(list, Reply{a.id, subject, input, n, f.Time, ev})
			}
			continue
		}
		inputs := messages.InputsOf(ev)
		if t := a.state.Turn; len(inputs) == 0 && t != nil && t.ID == messages.TurnOf(ev) { // a call of it waits
			inputs = a.state.TurnInputs()
		}
		for _, input := range inputs {
			owe(input)
		}
	}
	return list
}

// appended does what follows from a frame that is now in the log.
func (a *agent) appended(f *messages.Frame, size int, owed []Reply, sender *actor.PID) {
	a.unsaved.add(f, size)
	a.grown += size
	if a.succession.at.IsZero() {
		a.succession.at = time.Now()
	}
	a.save(a.rt.saveEvery, snapshotShare)
	now := Summarize(&a.state)
	a.observe(func(o Observer) {
		o.Committed(Commit{Agent: a.id, Seq: a.newest, Frame: f, Phase: now.Phase, Turn: now.Turn, Waiting: now.Waiting, Failed: now.Failed})
	})
	a.owe(owed)
	a.notifyStreams()
	a.notifyEnded(f)
	if sender != nil {
		a.answer(sender, projections.AnswerOf(f))
	}
	a.act()
}

// resend hands over the replies of the newest frame again: the owner before us
// may have died between the append and the sending.
func (a *agent) resend(f *messages.Frame) {
	if f != nil { // else no reply is owed
		a.owe(a.repliesTo(f))
	}
}

func (a *agent) owe(replies []Reply) {
	if len(replies) > 0 {
		a.observe(func(o Observer) { o.Owed(replies) })
	}
}

// observe calls the observer, if there is one; its panic is logged and goes no further.
func (a *agent) observe(what func(Observer)) {
	if a.rt.observer == nil {
		return
	}
	_, _ = protect(a.log, func() (any, error) {
		what(a.rt.observer)
		return nil, nil
	})
}
