package actors

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors/turn"
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
	a.ids.fold(f, a.state.Spend(f))
	a.owing.fold(f)
	a.cease(a.state.Effects())
	a.busy = true
	a.flight = flight{frame: f, replies: a.repliesTo(f), sender: sender}
	b, err := messages.EncodeFrame(a.id, f)
	a.flight.size = len(b)
	entry := eventlog.Entry{Agent: a.id, Expect: a.tail, Frame: f, Bytes: b, Summary: Summarize(&a.state)}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	log, root, self := a.rt.log, a.root, a.self
	a.rt.crew.run(func() {
		defer cancel()
		m := appended{err: err}
		if err == nil {
			m.tail, m.err = eventlog.Commit(ctx, log, entry, stalls(func(err error) { root.Send(self, stalled{f.ID, err}) }))
		}
		root.Send(self, m)
	})
}

// stallAfter is how long an append may go unanswered before those who wait for
// it are told why, and how often the log hears of it.
const stallAfter = 3 * time.Second

// stalls calls tell when an append has been tried again for a while, and now
// and then from there on.
func stalls(tell func(error)) func(error) {
	next := time.Now().Add(stallAfter)
	return func(err error) {
		if time.Now().After(next) {
			next = time.Now().Add(10 * stallAfter)
			tell(err)
		}
	}
}

// stalled tells all who wait for the agent why it cannot go on. The append is
// tried until the log answers; what they asked for under an id they may ask for
// again.
func (a *agent) stalled(m stalled) {
	if a.flight.frame == nil || a.flight.frame.ID != m.frame {
		return
	}
	a.rt.limited.warn(a.rt.logger, "the log does not take a frame; it is tried until it does", a.id.LogAttr(a.epoch), "error", m.err)
	refusal := messages.Refuse(messages.Unavailable, "agent %s cannot write to its log now (%v): try again with the same id", a.id, m.err)
	a.answer(a.flight.sender, messages.Answer{Err: refusal})
	a.flight.sender = nil
	outcomes := a.waiting[:0:0]
	for _, arr := range a.waiting {
		if _, asks := arr.message.(*Deliver); asks {
			a.answer(arr.sender, messages.Answer{Err: refusal})
		} else {
			outcomes = append(outcomes, arr)
		}
	}
	a.waiting = outcomes
}

// Summarize is what the headers of a frame say of the agent's state.
func Summarize(s *turn.State) eventlog.Summary {
	sum := eventlog.Summary{Phase: eventlog.Phase(s.Phase()), Open: s.Open(), Due: s.Due(), Waiting: s.Waiting()}
	if s.Turn != nil {
		sum.Turn = s.Turn.ID
	}
	if s.Ended != nil && s.Ended.Failed {
		sum.Failed = s.Ended.Reason
	}
	return sum
}

// repliesTo lists what the frame's events, which are folded, owe to subjects that
// inputs named.
func (a *agent) repliesTo(f *messages.Frame) []Reply {
	var list []Reply
	for i, ev := range f.Events {
		n := f.First + messages.EventNumber(i)
		owe := func(input string) {
			if subject, ok := a.owing.subjects[input]; ok {
				list = append(list, Reply{a.id, subject, input, n, f.Time, ev})
			}
		}
		if in, ok := ev.(messages.InputAccepted); ok {
			owe(in.Input)
		}
		if asked, ok := ev.(messages.ApprovalRequested); ok && a.state.Turn != nil && a.state.Turn.ID == asked.Turn {
			for _, input := range a.state.Turn.Inputs {
				owe(input)
			}
		}
		if subject, input := scheduleReply(ev); subject != "" {
			list = append(list, Reply{a.id, subject, input, n, f.Time, ev})
		}
		ended, _ := messages.Ended(ev)
		for _, input := range ended {
			owe(input)
		}
	}
	return list
}

// scheduleReply is who is told of an input that is to come later: that it was
// taken, that it was refused when it came, or that it will not come.
func scheduleReply(ev messages.Event) (subject, input string) {
	switch ev := ev.(type) {
	case messages.TimerSet:
		if ev.Input != nil {
			return ev.Input.Reply, ev.Input.ID
		}
	case messages.TimerFired:
		return ev.Reply, ev.Input
	case messages.TimerCancelled:
		return ev.Reply, ev.Input
	}
	return "", ""
}

func (a *agent) appended(m appended) {
	if m.err != nil {
		a.notAppended(m.err)
		return
	}
	a.busy = false
	fl := a.flight
	a.flight = flight{}
	a.tail, a.newest = m.tail, m.tail.Seq
	a.ids.placed(fl.frame, m.tail.Seq)
	a.unsaved.add(fl.frame, fl.size)
	a.succeeded.fold(fl.frame)
	a.save(a.rt.saveEvery, snapshotShare, true)
	now := Summarize(&a.state)
	a.tell(func(o Observer) {
		o.Committed(Commit{Agent: a.id, Seq: m.tail.Seq, Frame: fl.frame, Phase: string(now.Phase), Turn: now.Turn, Waiting: now.Waiting, Failed: now.Failed})
	})
	a.owe(fl.replies)
	a.tellEnded(fl.frame)
	if fl.sender != nil {
		a.answer(fl.sender, answerOf(fl.frame))
	}
	a.act()
	a.drain()
}

// resend hands over the replies of the newest frame again: the owner before us
// may have died between the append and the sending.
func (a *agent) resend(f *messages.Frame) {
	if f != nil { // else nobody waits
		a.owe(a.repliesTo(f))
	}
}

func (a *agent) owe(replies []Reply) {
	if len(replies) > 0 {
		a.tell(func(o Observer) { o.Owed(replies) })
	}
}

// tell calls the observer; its panic is logged and goes no further.
func (a *agent) tell(what func(Observer)) {
	defer func() {
		if p := recover(); p != nil {
			a.rt.logger.Error("an observer panicked", a.id.LogAttr(a.epoch), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	what(a.rt.observer)
}
