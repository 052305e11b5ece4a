package actors

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// How long an agent waits before it sends once more what nothing was heard of.
// What is sent is stored for its agent, so this is a second net: for a store that
// has lost it, or an owner that never came to it.
const (
	sendAgain     = time.Minute
	sendAgainMost = time.Hour
)

var errNoPost = errors.New("nothing can be sent to other agents here (Config.Send)")

// send gives a command to another agent. One whose effect ends with its being
// stored reports that; any other is sent again, now and then.
func (a *agent) send(e turn.Effect) (cancel func()) {
	l, ok := a.state.Letter(a.id, e)
	if !ok {
		return func() {}
	}
	l.Command = a.bounded(l.Command)
	ctx, cancel := context.WithCancel(a.ctx)
	a.rt.dispatcher.run(func() {
		for again := sendAgain; a.deliverTo(ctx, l); again = min(2*again, sendAgainMost) {
			if l.Stored != nil {
				a.report(e, l.Stored)
				return
			}
			select {
			case <-time.After(again):
			case <-ctx.Done():
				return
			}
		}
	})
	return cancel
}

// deliverTo tries until the command is stored for its agent; false if ctx ended
// first.
func (a *agent) deliverTo(ctx context.Context, l turn.Letter) bool {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, 5*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, a.rt.send(ctx, l.To, l.Command) },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
			a.rt.limited.warn(a.rt.logger, "a command for another agent cannot be stored; it is tried until it is",
				a.id.LogAttr(a.epoch), "to", l.To.String(), "command", l.Command.CommandType(), "error", err)
		}))
	return err == nil && ctx.Err() == nil
}

// bounded is a command between agents as large as a message may be: an answer
// that does not fit is a failure of its call, and of what waits below the
// arguments are left out first.
func (a *agent) bounded(c messages.Command) messages.Command {
	r, ok := c.(messages.Report)
	if !ok {
		return c
	}
	if limit := a.rt.maxResult(); len(r.Output) > limit || !a.fitsPeer(r) && r.Output != "" {
		r.What, r.Reason, r.Output = messages.ReportFailed, "too_large", ""
		r.Message = "its answer is too large to be handed over; it stands in its own history"
	}
	if !a.fitsPeer(r) {
		waiting := make([]messages.Wait, len(r.Waiting))
		for i, w := range r.Waiting {
			w.Arguments, w.Cut = "", true
			waiting[i] = w
		}
		r.Waiting = waiting
	}
	for !a.fitsPeer(r) && len(r.Waiting) > 1 {
		r.Waiting, r.More = r.Waiting[:len(r.Waiting)/2], true
	}
	r.Message = printable(r.Message, maxMessage)
	return r
}

// copyAnswer makes a child's answer that is too large for a frame the agent's own, before
// the report is decided upon. A large answer has more time, for however often it comes it
// is as large.
func (a *agent) copyAnswer(d *Deliver, r messages.Report) (*Deliver, error) {
	ctx, cancel := context.WithTimeout(a.ctx, storeLimit+time.Duration(r.Blob.Size>>20)*time.Second)
	defer cancel()
	r, err := a.rt.fetched(ctx, a.id, a.epoch, r)
	return a.stored(d, r, err)
}

// fetched is the report with a blob of the agent's own. An answer that is stored no
// more, or damaged, is a failure of its call; any other error may pass.
func (rt *Runtime) fetched(ctx context.Context, id messages.AgentID, epoch messages.Epoch, r messages.Report) (messages.Report, error) {
	child, err := messages.ParseAgentID(r.Child)
	if err != nil {
		return r, err
	}
	b, err := rt.shelf.copy(ctx, id, epoch, child, *r.Blob)
	if err == nil {
		r.Blob = b
		return r, nil
	}
	why := providers.AsError(err)
	if why.Kind != blobMissing && why.Kind != blobDamaged {
		return r, err
	}
	r.What, r.Reason, r.Message, r.Blob = messages.ReportFailed, string(why.Kind), printable(why.Message, maxMessage), nil
	return r, nil
}

// fitsPeer says that a report can be sent, and that the log takes what it says.
func (a *agent) fitsPeer(r messages.Report) bool {
	b, err := messages.Body(r)
	return err == nil && len(b) <= messages.MaxBody && a.rt.fits(r) == nil
}

// tellAgain tells the parent of a task that has come again, or is taken back
// after its end, how it ended, if it has: what was told before may be lost.
func (a *agent) tellAgain(c messages.Command, n messages.EventNumber) {
	input := ""
	switch c := c.(type) {
	case messages.Task:
		input = c.ID
	case messages.Recall:
		input = c.Input
		known, ok := a.state.Came(input)
		if !ok {
			return
		}
		n = known
	default:
		return
	}
	for i := range a.state.Tasks {
		if a.state.Tasks[i].Input == input {
			return // it has yet to end, or is being told of
		}
	}
	rt, id, epoch, partition := a.rt, a.id, a.epoch, a.ctx
	rt.dispatcher.run(func() {
		ctx, cancel := context.WithTimeout(partition, readLimit)
		defer cancel()
		if to, r, ok := rt.reportOf(ctx, id, epoch, input, n); ok {
			if err := rt.send(ctx, to, a.bounded(r)); err != nil { // it asks again
				rt.limited.warn(rt.logger, "the end of a task cannot be told again", id.LogAttr(epoch), "to", to.String(), "error", err)
			}
		}
	})
}

// reportOf reads how the task that was accepted at n has ended, by playing the
// log up to its end.
func (rt *Runtime) reportOf(ctx context.Context, id messages.AgentID, epoch messages.Epoch, input string, n messages.EventNumber) (to messages.AgentID, r messages.Report, ok bool) {
	if rt.turnToRead(ctx) != nil {
		return to, r, false
	}
	defer func() { <-rt.reading }()
	var l loading
	err := replaySafely(&l, id, func(fold func(eventlog.Recorded, error) bool) {
		for rec, err := range rt.log.Read(ctx, id, 0) {
			if !fold(rec, err) {
				return
			}
			if rec.Frame.Last() < n {
				continue
			}
			if to, r, ok = ended(&l.state, id, input); ok {
				return
			}
		}
	})
	if err != nil {
		rt.limited.warn(rt.logger, "how a task has ended cannot be read", id.LogAttr(epoch), "error", err)
	}
	return to, r, ok
}

// ended is what a parent is to be told of the end of a task; ok is false if that is
// not what is to be told now.
func ended(s *turn.State, id messages.AgentID, input string) (to messages.AgentID, r messages.Report, ok bool) {
	for _, e := range s.Effects() {
		letter, is := s.Letter(id, e)
		if r, report := letter.Command.(messages.Report); is && report && e.ID == input && r.What.Ends() {
			return letter.To, r, true
		}
	}
	return to, r, false
}
