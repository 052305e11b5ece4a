package actors

import (
	"context"
	"fmt"
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
	ids     index
	replies map[string]string
	// ended are inputs whose terminal event is in the newest frame: their
	// reply subjects are still known, so that it can be sent again.
	ended []string
	last  eventlog.Recorded
}

// apply folds the next frame.
func (l *loading) apply(rec eventlog.Recorded) {
	for _, input := range l.ended {
		delete(l.replies, input)
	}
	l.ended = nil
	for _, ev := range rec.Frame.Events {
		if in, ok := ev.(messages.InputAccepted); ok && in.Reply != "" {
			if l.replies == nil {
				l.replies = make(map[string]string)
			}
			l.replies[in.Input] = in.Reply
		}
		inputs, _ := messages.Ended(ev)
		l.ended = append(l.ended, inputs...)
	}
	l.ids.remember(rec.Frame, l.state.Apply(rec.Frame))
	l.tail, l.last = rec.Tail(), rec
}

// load replays the log outside the mailbox.
func (a *agent) load() {
	ctx, cancel := context.WithCancel(context.Background())
	a.busy, a.cancel = true, cancel
	self, root := a.self, a.root
	go func() {
		var l loading
		err := replaySafely(ctx, a.rt.log, a.id, &l)
		root.Send(self, loaded{l, err})
	}()
}

// replaySafely replays, and takes a panic for damage: events that cannot be
// folded must not take the node along.
func replaySafely(ctx context.Context, log eventlog.Reader, id messages.AgentID, l *loading) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &eventlog.DamageError{Agent: id, Seq: l.tail.Seq, Event: l.tail.Last + 1, Err: fmt.Errorf("an event cannot be folded: %v", p)}
		}
	}()
	return replay(ctx, log, id, l)
}

// replay folds the agent's frames up to the tail that the log's leader names,
// plus what no head can be: a foreign message behind it, which the fence must
// count.
func replay(ctx context.Context, log eventlog.Reader, id messages.AgentID, l *loading) error {
	for rec, err := range log.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
		l.apply(rec)
	}
	tail, err := log.Tail(ctx, id)
	if err != nil {
		return err
	}
	if tail.Frame == l.tail.Frame {
		l.tail.Seq = tail.Seq
		return nil
	}
	return messages.Refuse(messages.Unavailable, "agent %s was written to while it was being loaded: try again", id)
}

func (a *agent) loaded(m loaded) {
	a.busy = false
	if a.left || m.err != nil {
		a.fail(m.err)
		a.drain()
		return
	}
	a.state, a.tail, a.ids, a.replies = m.state, m.tail, m.ids, m.replies
	switch {
	case a.tail.Epoch > a.epoch:
		a.fenced(a.tail.Epoch)
	case a.tail.Frame != "" && a.tail.Epoch < a.epoch:
		a.resend(m.last.Frame)
		a.waiting = append([]arrival{{message: goOn{}}}, a.waiting...)
		a.takeOver()
	case a.state.Open():
		a.forget(m.ended)
		a.recover()
	default:
		a.forget(m.ended)
		a.act() // a paused turn may have timers
	}
	a.drain()
}

// takeOver fences the agent against whoever wrote its newest frame.
func (a *agent) takeOver() {
	a.recovering = true
	cause := messages.Cause{Type: "takeover"}
	activated := messages.AgentActivated{Epoch: a.epoch, Previous: a.tail.Epoch}
	a.commit(cause, a.state.Activate(activated), nil)
}

// recover goes on with what an earlier activation began.
func (a *agent) recover() {
	a.recovering = false
	if a.broken != nil {
		return
	}
	events, err := a.state.Decide(a.env(), turn.Recover{})
	if err == nil && len(events) > 0 {
		a.commit(messages.Cause{Type: "takeover"}, events, nil)
		return
	}
	a.act()
}

// forget drops reply subjects that nothing will be sent to any more.
func (a *agent) forget(inputs []string) {
	for _, input := range inputs {
		delete(a.replies, input)
	}
}

// readLimit is how long the first answer to a command may take to be read.
const readLimit = time.Minute

// answerAgain gives the first answer to a command whose id was spent at n. If it
// was another command that spent it, this one is refused: it was not applied.
func (a *agent) answerAgain(sender *actor.PID, c messages.Command, n messages.EventNumber) {
	if sender == nil {
		return
	}
	root, log, id, reading := a.root, a.rt.log, a.id, a.rt.reading
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), readLimit)
		defer cancel()
		select {
		case reading <- struct{}{}:
			defer func() { <-reading }()
		case <-ctx.Done():
			root.Send(sender, &messages.Answer{Err: messages.Refuse(messages.Unavailable, "too many ask again for what was answered before: try again with the same id")})
			return
		}
		ans := messages.Answer{N: n, Duplicate: true}
		for rec, err := range log.Read(ctx, id, n) {
			if err != nil {
				ans = messages.Answer{Err: messages.Refuse(messages.Unavailable, "the first answer to this id cannot be read: %v", err)}
			} else {
				ans = answerOf(rec.Frame)
				ans.Duplicate = true
				if first := rec.Frame.Cause.Type; first != c.CommandType() {
					ans = messages.Answer{Err: messages.Refuse(messages.Conflict, "the id %q was spent by another command (%s), at event %d: this %s was not applied; choose another id", c.CommandID(), first, n, c.CommandType())}
				}
			}
			break
		}
		root.Send(sender, &ans)
	}()
}
