package turn

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// failCall records the failure of a call, with the text that the model reads.
func (d *decision) failCall(c *projections.CallState, kind messages.ToolFailure, message string) {
	d.emit(messages.ToolFailed{Turn: c.Turn, Call: c.ID, Kind: kind, Message: message})
}

// skipCall records that a call never runs, and why.
func (d *decision) skipCall(c *projections.CallState, why string) {
	d.emit(messages.ToolSkipped{Turn: c.Turn, Call: c.ID, Reason: why})
}

// review sets the outcome of a call that cannot run, or must not, and asks for approval of one that
// needs it.
func (d *decision) review(c *projections.CallState, r Review) {
	tool, known := d.env.Definition.Tools[c.Tool]
	switch {
	case !known:
		d.failCall(c, messages.ToolFailureUnknownTool, fmt.Sprintf("there is no tool named %q", c.Tool))
		return
	case d.s.Turn.ToolChoice == "none":
		d.failCall(c, messages.ToolFailureNotAllowed, "no tool may be used in this turn: answer without")
		return
	case !json.Valid([]byte(c.Arguments)):
		d.failCall(c, messages.ToolFailureBadArguments, "the arguments are not valid JSON")
		return
	}
	singled, why := d.beforeCall(c, r.Hooks)
	if c.Outcome.Final() || d.s.Turn.HookAnswer != nil {
		return
	}
	if r.Misfit != "" {
		d.failCall(c, messages.ToolFailureBadArguments, r.Misfit)
		return
	}
	if of, reason := d.repeats(c); of != "" {
		d.emit(messages.ToolFlagged{Turn: c.Turn, Call: c.ID, Tool: c.Tool, Of: of, Reason: reason})
		if tool.Repeats && !singled {
			singled, why = true, reason
		}
	}
	if singled || tool.Approval == ApproveAlways || tool.Approval == ApproveAsked && !r.Free {
		d.requireApproval(c, why, singled)
	}
}

// beforeCall records what hooks decided about a call before it runs. It reports whether one of
// them paused it, which asks for its approval, and why.
func (d *decision) beforeCall(c *projections.CallState, hooks []HookDecision) (paused bool, why string) {
	for _, h := range hooks {
		d.hooked(h, c.ID)
		switch h.Do {
		case HookPause:
			paused, why = true, h.Reason
		case HookSkip:
			d.skipCall(c, h.Text)
		case HookFailed:
			d.failCall(c, messages.ToolFailureHook, "not run: hook "+h.Hook+" failed: "+h.Reason)
		}
		if c.Outcome.Final() {
			return false, ""
		}
	}
	return paused, why
}

// cutOff fails a call of an answer that is incomplete: its arguments may be too.
func (d *decision) cutOff(c *projections.CallState, finish string) {
	why := "the answer that asks for it was cut off at the limit of tokens: ask again, with less text"
	if finish == messages.FinishFilter {
		why = "the answer that asks for it was cut off by the server's content filter"
	}
	d.failCall(c, messages.ToolFailureCutOff, "not run: "+why)
}

// startTool records the start of the next attempt of a call. Its OnUnknown is the definition's;
// the call of a tool that is gone keeps the one of the attempt before.
func (d *decision) startTool(c *projections.CallState, reason string) {
	t, tool := d.s.Turn, d.env.Definition.Tools[c.Tool]
	ev := messages.ToolStarted{
		Turn: t.ID, Call: c.ID, Tool: c.Tool, OnUnknown: tool.OnUnknown,
		Key:     d.env.Agent.Full() + "/" + string(t.ID) + "/" + string(c.ID),
		Attempt: c.Attempt + 1, Reason: reason, Dry: d.s.Forks.Dry(),
	}
	if c.Rewritten {
		ev.Arguments = c.Arguments
	}
	if tool.Child != "" && !ev.Dry {
		d.spawn(c, tool, ev)
		return
	}
	if ev.OnUnknown == "" {
		ev.OnUnknown = c.OnUnknown
	}
	d.emit(ev)
}

// skipCalls skips the calls that have not begun, because a hook ends the turn.
func (d *decision) skipCalls() {
	t := d.s.Turn
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Outcome == projections.CallRequested || c.Outcome == projections.CallWaiting {
			d.cancelTimer(projections.TimerID(projections.ForApproval, c.ID))
			d.skipCall(c, "not run: a hook ended the turn")
		}
	}
}

// reconciled records what the tool of a lost call reports of it.
func (d *decision) reconciled(c *projections.CallState, o ToolReconciled) {
	switch o.Outcome {
	case messages.OutcomeCompleted:
		d.emit(messages.ToolCompleted{Turn: c.Turn, Call: c.ID, Output: o.Output, Blob: o.Blob, By: messages.ByReconcile})
	case messages.OutcomeRetry:
		d.runAgain(c, string(messages.ByReconcile))
	default:
		d.unknownOutcome(c, "its process was lost while it ran, and the tool does not know what became of it")
	}
}

// lostCall handles a call whose process was lost while it ran, as its OnUnknown requires.
func (d *decision) lostCall(c *projections.CallState) {
	if d.s.Forks.Dry() || c.Dry { // it has not run
		d.runAgain(c, "restart")
		return
	}
	switch c.OnUnknown {
	case messages.ReadOnly, messages.Rerun:
		d.runAgain(c, "restart")
	case messages.Reconcile:
		if d.s.lost == nil {
			d.s.lost = make(map[lostCall]bool)
		}
		d.s.lost[lostCall{c.Turn, c.ID, c.Attempt}] = true
	default:
		d.unknownOutcome(c, "its process was lost while it ran: it may or may not have had its effect")
	}
}

// runAgain starts a lost call once more, unless it was lost too often.
func (d *decision) runAgain(c *projections.CallState, reason string) {
	switch _, defined := d.env.Definition.Tools[c.Tool]; {
	case !defined && c.OnUnknown != messages.ReadOnly:
		d.unknownOutcome(c, "its process was lost while it ran, and its tool is not defined any more")
	case c.Attempt > maxRestarts:
		d.failCall(c, messages.ToolFailureRestarts, fmt.Sprintf("its process was lost %d times while it ran: it may or may not have had its effect", c.Attempt))
	default:
		d.startTool(c, reason)
	}
}

// unknownOutcome records that a person must decide what became of a call.
func (d *decision) unknownOutcome(c *projections.CallState, why string) {
	d.emit(messages.ToolUnknown{Turn: c.Turn, Call: c.ID, Reason: why})
}

// repeats returns the earlier call of the turn that this one asks for again, and the
// reason to record. It returns none where a repeat does no harm.
func (d *decision) repeats(c *projections.CallState) (of messages.CallID, reason string) {
	if !projections.RepeatHurts(d.env.Definition.Tools[c.Tool].OnUnknown) {
		return "", ""
	}
	for _, done := range d.s.Turn.Done {
		if done.Tool == c.Tool && done.ID != c.ID && d.same(done.Arguments, c.Arguments) {
			return done.ID, fmt.Sprintf("call %s has done the same, or may have", done.ID)
		}
	}
	for i := range d.s.Turn.Calls {
		o := &d.s.Turn.Calls[i]
		if o.ID == c.ID {
			break
		}
		if o.Tool == c.Tool && !o.Outcome.Final() && d.same(o.Arguments, c.Arguments) {
			return o.ID, fmt.Sprintf("call %s of the same answer asks for the same", o.ID)
		}
	}
	return "", ""
}
