package actors

import (
	"context"
	"errors"

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
		l.ended = append(l.ended, endedBy(ev)...)
	}
	l.ids.add(l.state.Apply(rec.Frame))
	l.tail, l.last = rec.Tail(), rec
}

// endedBy are the inputs that ev is the terminal event of.
func endedBy(ev messages.Event) []string {
	switch ev := ev.(type) {
	case messages.TurnCompleted:
		return ev.Inputs
	case messages.TurnFailed:
		return ev.Inputs
	case messages.TurnAborted:
		return ev.Inputs
	}
	return nil
}

// load replays the log outside the mailbox.
func (a *agent) load() {
	ctx, cancel := context.WithCancel(context.Background())
	a.busy, a.cancel = true, cancel
	self, root := a.self, a.root
	go func() {
		var l loading
		err := replay(ctx, a.rt.log, a.id, &l)
		root.Send(self, loaded{l, err})
	}()
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
	if m.err != nil {
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

// fail answers everything from now on with why the agent cannot act. Damage
// stays until somebody mends it; anything else is tried again by the next
// activation.
func (a *agent) fail(err error) {
	var damage *eventlog.DamageError
	if errors.As(err, &damage) {
		a.broken = messages.Refuse(messages.Damaged, "%v", err)
		a.rt.logger.Error("an agent's log is damaged; it is left untouched", "agent", a.id.String(), "error", err)
		return
	}
	a.broken = messages.Refuse(messages.Unavailable, "agent %s could not be loaded: %v", a.id, err)
	a.rt.logger.Warn("an agent could not be loaded", "agent", a.id.String(), "error", err)
	a.leave()
}

// fenced stops an agent that somebody else owns.
func (a *agent) fenced(newer messages.Epoch) {
	a.broken = messages.Refuse(messages.Unavailable, "agent %s is owned by another node now (epoch %d): try again", a.id, newer)
	a.rt.logger.Warn("an agent is owned by another node; its work here stops", "agent", a.id.String(), "epoch", a.epoch, "newer", newer)
	a.rt.observer.Fenced(a.id, newer)
	a.leave()
}

// leave cancels all work and asks the partition to let the agent go, so that
// the next message activates it anew.
func (a *agent) leave() {
	a.stop()
	a.root.Send(a.parent, leaving{a.id})
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

// forget drops reply subjects that nothing will be sent to any more.
func (a *agent) forget(inputs []string) {
	for _, input := range inputs {
		delete(a.replies, input)
	}
}

// answerAgain gives the first answer to a command whose id was spent at n.
func (a *agent) answerAgain(sender *actor.PID, n messages.EventNumber) {
	if sender == nil {
		return
	}
	root, log, id := a.root, a.rt.log, a.id
	go func() {
		ans := Answer{N: n, Duplicate: true}
		for rec, err := range log.Read(context.Background(), id, n) {
			if err != nil {
				ans = Answer{Err: messages.AsError(err)}
			} else {
				ans = answerOf(rec.Frame)
				ans.Duplicate = true
			}
			break
		}
		root.Send(sender, &ans)
	}()
}
