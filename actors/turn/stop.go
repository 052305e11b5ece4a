package turn

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// stop ends the running turn for a command, and leaves a note for the model if it is not empty.
func (d *decision) stop(c messages.Command, only messages.TurnID, reason, note string) error {
	t, by := d.s.Turn, c.CommandType()
	switch {
	case t == nil:
		return d.noop(c, "no turn is running: there is nothing to %s", by)
	case only != "" && only != t.ID:
		return d.noop(c, "turn %s is not running: there is nothing to %s", only, by)
	}
	d.abort(by, reason, note)
	return nil
}

// interruptNote returns what the model reads of an interrupt.
func interruptNote(reason string) string {
	note := "The user interrupted the turn above before it was finished."
	if reason != "" {
		note += " Reason: " + reason
	}
	return note
}

// abort ends the running turn and its inputs, also those that steer it and that no model has seen.
func (d *decision) abort(by, reason, note string) {
	d.endCalls("the turn was stopped")
	d.cancelTimers()
	t := d.s.Turn
	d.emit(messages.TurnAborted{Turn: t.ID, Inputs: d.s.TurnInputs(), By: by, Reason: reason, Note: note, Steps: t.Steps, Usage: t.Total()})
}

// endCalls sets an outcome for every open call, and settles the reservation of a model call. why is
// what has happened to the turn.
func (d *decision) endCalls(why string) {
	t := d.s.Turn
	d.dropSummary(t.ID, why)
	if m := t.Model; m != nil && m.UnderWay() {
		d.settleLost(m)
	}
	for i := range t.Calls {
		switch c := &t.Calls[i]; c.Outcome {
		case projections.CallRequested, projections.CallWaiting:
			d.skipCall(c, "not run: "+why+" before its start")
		case projections.CallRunning:
			d.stopChild(c, why)
			d.failCall(c, messages.ToolFailureInterrupted, "stopped while it ran: it may or may not have had its effect")
		case projections.CallUnknown:
			d.failCall(c, messages.ToolFailureUnknown, "its outcome was never known: it may or may not have had its effect")
		}
	}
}

// clear takes the agent back to what it was when it was created. The ids of
// processed commands stay in the deduplication window, and what was used stays used.
func (d *decision) clear(c messages.Clear) error {
	d.drop(c.CommandType(), c.Reason)
	d.emit(messages.AgentCleared{Reason: c.Reason})
	return nil
}

// drop ends the running turn and all inputs that wait, for a clear or a delete.
func (d *decision) drop(by, reason string) {
	if d.s.Turn != nil {
		d.abort(by, by, "")
	}
	each := shortened(reason, len(d.s.Inputs.Queued))
	for len(d.s.Inputs.Queued) > 0 {
		d.emit(messages.InputDropped{Input: d.s.Inputs.Queued[0].ID, By: by, Reason: each})
	}
	d.dropSummary("", "stopped by a "+by)
	d.cancelSchedules(by, reason)
}

// cancel cancels what has not begun.
func (d *decision) cancel(c messages.Cancel) error {
	switch {
	case c.All:
		return d.cancelAll(c)
	case c.Timer != "":
		return d.unschedule(c)
	}
	return d.cancelInput(c)
}

// cancelAll cancels every input that waits and every scheduled one.
func (d *decision) cancelAll(c messages.Cancel) error {
	waiting := d.s.waiting()
	if len(waiting) == 0 && len(d.s.Timers.Scheduled) == 0 {
		return d.noop(c, "no input waits and none is scheduled: there is nothing to cancel")
	}
	reason := shortened(c.Reason, len(waiting))
	for _, id := range waiting {
		d.emit(messages.InputCancelled{Input: id, Reason: reason})
	}
	d.cancelSchedules(c.CommandType(), c.Reason)
	return nil
}

// cancelInput cancels an input that waits.
func (d *decision) cancelInput(c messages.Cancel) error {
	if slices.Contains(d.s.waiting(), c.Input) {
		d.emit(messages.InputCancelled{Input: c.Input, Reason: c.Reason})
		return nil
	}
	if slices.Contains(d.s.TurnInputs(), c.Input) {
		return messages.Refuse(messages.Conflict, "input %q has begun: turn %s runs with it; interrupt or abort that", c.Input, d.s.Turn.ID)
	}
	if sc := d.s.scheduled(c.Input); sc != nil {
		return messages.Refuse(messages.Conflict, "input %q does not wait: it is to come later; cancel timer %q", c.Input, sc.Timer)
	}
	return messages.Refuse(messages.NotFound, "no input %q is waiting: it has ended or was never accepted", c.Input)
}

// waiting returns the ids of the inputs that no model has seen or is asked about.
func (s *State) waiting() []string {
	return slices.Concat(s.Inputs.QueuedIDs(), s.Inputs.SteeredIDs())
}

// maxEach is how many bytes of a reason each of several inputs records; the frame's cause has
// the whole.
const maxEach = 80

// shortened returns the reason that is recorded with each of so many inputs.
func shortened(reason string, inputs int) string {
	if inputs > 1 {
		return shorten(reason, maxEach)
	}
	return reason
}

// shorten returns the first bytes of a text, at most so many, and a mark if more are left out.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
