package turn

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// maxRestarts is how often one step's model call may be lost with its process
// before the turn is failed, and how often one tool call: a call that kills its
// process must not do so for ever.
const maxRestarts = 10

// outcome records what came of an effect. It reports false, and changes nothing, if that is not
// awaited any more.
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
		d.stored(o)
	case ScheduleDue:
		if sc := d.s.Timers.Next(); sc != nil && sc.Timer == o.Timer && sc.At.Equal(o.At) {
			d.fire(*sc)
		}
	case Summarized:
		if c := d.s.Summary; c != nil && c.Call == o.Call {
			d.summarized(*c, o)
		}
	case SummaryErred:
		if c := d.s.Summary; c != nil && c.Call == o.Call {
			d.summaryErred(*c, o)
		}
	default:
		if d.s.Turn != nil {
			d.turnOutcome(o)
		}
	}
	return d.s.Last != n
}

// turnOutcome records what came of an effect of the running turn.
func (d *decision) turnOutcome(o any) {
	switch o := o.(type) {
	case TimerDue:
		d.fired(o.Timer)
	case ModelAnswered:
		if d.awaits(o.Call) {
			d.answered(o)
		}
	case ModelErred:
		if d.awaits(o.Call) {
			d.erred(o)
		}
	case ToolReturned:
		if c := d.runs(o.Call, o.Attempt); c != nil {
			d.emit(messages.ToolCompleted{Turn: c.Turn, Call: c.ID, Output: o.Output, Blob: o.Blob})
			d.decidedAboutCall(c, o.Hooks)
		}
	case ToolErred:
		if c := d.runs(o.Call, o.Attempt); c != nil {
			d.emit(messages.ToolFailed{Turn: c.Turn, Call: c.ID, Kind: o.Kind, Message: o.Message})
			d.decidedAboutCall(c, o.Hooks)
		}
	case ToolReconciled:
		d.reconciled(o)
	}
}

// awaits reports whether the model call is the one under way.
func (d *decision) awaits(call messages.CallID) bool {
	m := d.s.Turn.Model
	return m != nil && m.ID == call && m.UnderWay()
}

// runs returns the tool call if that attempt of it is under way; else nil.
func (d *decision) runs(call messages.CallID, attempt int) *projections.CallState {
	c := d.s.Turn.Call(call)
	if c == nil || c.Outcome != projections.CallRunning || c.Attempt != attempt || d.s.isLost(c) || c.Child != nil {
		return nil
	}
	return c
}

// recover records what a crash or takeover has cut off. A call that was lost is treated as its
// OnUnknown says.
func (d *decision) recover() {
	t, summary := d.s.Turn, d.s.Summary
	if summary != nil && summary.Turn == "" {
		d.lostSummary()
	}
	if t == nil || t.Paused() != "" {
		return
	}
	if tm := d.s.Timers.OfTurn(projections.DurationTimer); tm != nil && !d.env.Now.Before(tm.At) {
		if d.fired(projections.DurationTimer); t.Reached != nil && !d.env.Definition.PauseAtLimit {
			return // the turn fails
		}
	}
	if summary != nil && summary.Turn == t.ID && t.Reached == nil { // else the turn is paused without it
		d.lostSummary()
	}
	if t.Model != nil && t.Model.UnderWay() {
		d.restart(t.Model)
		return
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Outcome == projections.CallRunning && c.Child == nil { // what a child does is not lost
			d.lostCall(c)
		}
	}
}
