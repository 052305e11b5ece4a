package actors

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// How long an agent waits before it sends a message again that is stored for its agent and
// has had no effect yet. The store may have lost it.
const (
	sendAgain     = time.Minute
	sendAgainMost = 64 * sendAgain
)

var errNoPost = errors.New("nothing can be sent to other agents here (Config.Send)")

// send sends the message of an effect to another agent.
func (a *agent) send(e turn.Effect) (cancel func()) {
	m, ok := a.state.Message(a.id, e)
	if !ok {
		return func() {}
	}
	m.Command = a.bounded(m.Command)
	ctx, cancel := context.WithCancel(a.ctx)
	a.rt.dispatcher.run(func() {
		for again := sendAgain; a.store(ctx, m); again = min(2*again, sendAgainMost) {
			if !m.Resend {
				a.report(e, turn.MessageStored{ID: e.ID})
				return
			}
			if pause(ctx, again) != nil {
				return
			}
		}
	})
	return cancel
}

// store tries until the message is stored for its agent. It reports false if ctx ended first.
func (a *agent) store(ctx context.Context, m turn.Message) bool {
	traced := m.Trace.Context(ctx)
	err := a.rt.retry(ctx, func() error { return a.rt.send(traced, m.To, m.Command) }, "a message to another agent cannot be stored; it is tried until it is",
		a.id.LogAttr(a.epoch), "to", m.To.String(), "command", m.Command.CommandType())
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
	if len(r.Output) > a.rt.maxResult || !a.fitsPeer(r) && r.Output != "" {
		r.What, r.Reason, r.Output = messages.ReportFailed, "too_large", ""
		r.Message = "its answer is too large to be handed over; its own history has it"
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
// the report is decided on. A large answer has more time, for however often it comes it
// is as large.
func (a *agent) copyAnswer(d *Deliver, r messages.Report) (*Deliver, error) {
	ctx, cancel := context.WithTimeout(a.ctx, waitLimit+time.Duration(r.Blob.Size>>20)*time.Second)
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
	b, err := rt.blobs.copy(ctx, id, epoch, child, *r.Blob)
	if err == nil {
		r.Blob = b
		return r, nil
	}
	why := providers.AsError(err)
	if why.Kind != messages.ModelFailureBlobMissing && why.Kind != messages.ModelFailureBlobDamaged {
		return r, err
	}
	r.What, r.Reason, r.Message, r.Blob = messages.ReportFailed, string(why.Kind), printable(why.Message, maxMessage), nil
	return r, nil
}

// fitsPeer reports whether a report can be sent, and whether the log takes what it reports.
func (a *agent) fitsPeer(r messages.Report) bool {
	b, err := messages.Body(r)
	return err == nil && len(b) <= messages.MaxBody && a.rt.fits(r) == nil
}

// reportAgain sends the parent of a task that comes again, or is cancelled after its end, how
// it ended: the report before may be lost.
func (a *agent) reportAgain(c messages.Command) {
	input := ""
	switch c := c.(type) {
	case messages.Task:
		input = c.ID
	case messages.CancelChild:
		input = c.Input
	}
	m, ok := a.state.EndOf(a.id, input)
	if !ok {
		return
	}
	rt, id, epoch, partition := a.rt, a.id, a.epoch, a.ctx
	report := a.bounded(m.Command)
	rt.dispatcher.run(func() {
		ctx, cancel := context.WithTimeout(partition, sideLimit)
		defer cancel()
		if err := rt.send(ctx, m.To, report); err != nil { // it asks again
			rt.warn("the end of a task cannot be reported again", id.LogAttr(epoch), "to", m.To.String(), "error", err)
		}
	})
}
