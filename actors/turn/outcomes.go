package turn

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// maxRestarts is how often one step's model call may be lost with its process before the turn
// fails, and how often one tool call may: a call that stops its process must not do so endlessly.
const maxRestarts = 10

// outcome records what came of an effect. It reports false, and changes nothing, if the effect is
// not awaited any more.
func (d *decision) outcome(o any) bool {
	n := d.s.Last
	switch o := o.(type) {
	case Recover:
		d.recover()
		return true
	case Continue:
		return true
	case HooksAsked:
		return d.hooksAsked(o)
	case MessageStored:
		d.messageStored(o)
	case TimerDue:
		d.due(o)
	case Summarized:
		if c := d.summary(o.Call); c != nil {
			d.summarized(*c, o)
		}
	case ModelAnswered:
		if d.awaits(o.Call) {
			d.answered(o)
		}
	case ModelErred:
		if c := d.summary(o.Call); c != nil {
			d.retrySummary(*c, o, d.env.Now.Add(retryDelay(c.Attempt, o.RetryAfter, d.env.Jitter)))
		} else if d.awaits(o.Call) {
			d.erred(o)
		}
	case ToolReturned:
		if c := d.runs(o.Call); c != nil && c.Attempt == o.Attempt && !d.s.isLost(c) {
			d.returned(c, o)
		}
	case ToolReconciled:
		if c := d.runs(o.Call); c != nil && d.s.isLost(c) {
			d.reconciled(c, o)
		}
	}
	return d.s.Last != n
}

// summary returns the summary that is being made if that is its call; else nil.
func (d *decision) summary(call messages.CallID) *messages.CompactionRequested {
	if c := d.s.Summary; c != nil && c.Call == call {
		return c
	}
	return nil
}

// awaits reports whether the model call is the one under way.
func (d *decision) awaits(call messages.CallID) bool {
	t := d.s.Turn
	return t != nil && t.Model != nil && t.Model.ID == call && t.Model.UnderWay()
}

// runs returns the call if its tool runs here, or did when its process died; else nil.
func (d *decision) runs(call messages.CallID) *projections.CallState {
	if c := d.s.call("", call); c != nil && c.Outcome == projections.CallRunning && c.Child == nil {
		return c
	}
	return nil
}

// returned records the result of a call, and what hooks decided about it.
func (d *decision) returned(c *projections.CallState, o ToolReturned) {
	switch {
	case o.Unknown != "":
		d.unknownOutcome(c, o.Unknown)
	case o.Failed == "":
		d.emit(messages.ToolCompleted{Turn: c.Turn, Call: c.ID, Output: o.Output, Blob: o.Blob})
	default:
		d.emit(messages.ToolFailed{Turn: c.Turn, Call: c.ID, Kind: o.Failed, Message: o.Output})
	}
	d.decided(o.Hooks, c.ID)
}

// recover handles what a crash or takeover has cut off.
func (d *decision) recover() {
	t, summary := d.s.Turn, d.s.Summary
	if summary != nil && summary.Turn == "" {
		d.lostSummary()
	}
	if t == nil || t.Paused() != "" {
		return
	}
	if tm := d.s.Timers.OfTurn(projections.DurationTimer); tm != nil && !d.env.Now.Before(tm.At) {
		if d.fired(projections.DurationTimer); t.Exceeded != nil && !d.env.Definition.PauseAtLimit {
			return // the turn fails
		}
	}
	if summary != nil && summary.Turn == t.ID && t.Exceeded == nil { // else the turn is paused without it
		d.lostSummary()
	}
	if t.Model != nil && t.Model.UnderWay() {
		d.restart(t.Model)
		return
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Outcome == projections.CallRunning && c.Child == nil { // a child has its own process
			d.lostCall(c)
		}
	}
}
