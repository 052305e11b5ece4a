package turn

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// review gives a call that cannot run or must not its outcome, and asks for approval of one that
// needs it.
func (d *decision) review(c *projections.CallState, j Review) {
	t := d.s.Turn
	tool, known := d.env.Definition.Tools[c.Tool]
	switch {
	case !known:
		d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "unknown_tool", Message: fmt.Sprintf("there is no tool named %q", c.Tool)})
		return
	case d.s.Turn.ToolChoice == "none":
		d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "not_allowed", Message: "no tool may be used in this turn: answer without"})
		return
	case !json.Valid([]byte(c.Arguments)):
		d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "bad_arguments", Message: "the arguments are not valid JSON"})
		return
	}
	gate, why := d.beforeCall(c, j.Hooks)
	if c.Outcome.Final() || t.HookAnswer != nil {
		return
	}
	if j.Misfit != "" {
		d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "bad_arguments", Message: j.Misfit})
		return
	}
	if of, reason := d.repeats(c); of != "" {
		d.emit(messages.ToolFlagged{Turn: t.ID, Call: c.ID, Tool: c.Tool, Of: of, Reason: reason})
		if tool.Repeats && !gate {
			gate, why = true, reason
		}
	}
	if gate || tool.Approval == "always" || tool.Approval == "asked" && !j.Free {
		d.gate(c, why, gate)
	}
}

// beforeCall records what hooks decided about a call before it runs: a pause of one call is a
// wish for its approval.
func (d *decision) beforeCall(c *projections.CallState, hooks []HookDecision) (gate bool, why string) {
	t := d.s.Turn
	for _, h := range hooks {
		d.hooked(h, c.ID)
		switch h.Do {
		case HookPause:
			gate, why = true, h.Reason
		case HookSkip:
			d.emit(messages.ToolSkipped{Turn: t.ID, Call: c.ID, Reason: h.Text})
		case HookFailed:
			d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "hook", Message: "not run: hook " + h.Hook + " failed: " + h.Reason})
		}
		if c.Outcome.Final() {
			return false, ""
		}
	}
	return gate, why
}

// cutOff fails a call of an answer that is incomplete: its arguments may be too.
func (d *decision) cutOff(c *projections.CallState, finish string) {
	why := "the answer that asks for it was cut off at the limit of tokens: ask again, with less text"
	if finish == messages.FinishFilter {
		why = "the answer that asks for it was cut off by the server's content filter"
	}
	d.emit(messages.ToolFailed{Turn: d.s.Turn.ID, Call: c.ID, Kind: "cut_off", Message: "not run: " + why})
}

// startTool intends the next attempt of a call. Its OnUnknown is the definition's; the
// call of a tool that is gone keeps the one of the attempt before.
func (d *decision) startTool(c *projections.CallState, reason string) {
	t := d.s.Turn
	if d.env.Definition.Tools[c.Tool].Child != "" {
		d.spawn(c, reason)
		return
	}
	onUnknown := d.env.Definition.Tools[c.Tool].OnUnknown
	if onUnknown == "" {
		onUnknown = c.OnUnknown
	}
	ev := messages.ToolStarted{
		Turn: t.ID, Call: c.ID, Tool: c.Tool, OnUnknown: onUnknown,
		Key:     d.env.Agent.Full() + "/" + string(t.ID) + "/" + string(c.ID),
		Attempt: c.Attempt + 1, Reason: reason,
	}
	if c.Rewritten {
		ev.Arguments = c.Arguments
	}
	d.emit(ev)
}

// skipCalls gives the calls that have not begun an outcome when a hook ends the turn.
func (d *decision) skipCalls() {
	t := d.s.Turn
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Outcome == projections.CallRequested || c.Outcome == projections.CallWaiting {
			d.cancel(projections.TimerID(projections.ForApproval, c.ID))
			d.emit(messages.ToolSkipped{Turn: t.ID, Call: c.ID, Reason: "not run: a hook ended the turn"})
		}
	}
}

// reconciled records what the tool of a lost call knows of it.
func (d *decision) reconciled(c *projections.CallState, o ToolReconciled) {
	switch o.Outcome {
	case messages.OutcomeCompleted:
		d.emit(messages.ToolCompleted{Turn: c.Turn, Call: c.ID, Output: o.Output, Blob: o.Blob, By: "reconcile"})
	case messages.OutcomeRetry:
		d.runAgain(c, "reconcile")
	default:
		d.emit(messages.ToolUnknown{Turn: c.Turn, Call: c.ID, Reason: "its process was lost while it ran, and the tool does not know what became of it"})
	}
}

// lostCall records the loss of a call that ran.
func (d *decision) lostCall(c *projections.CallState) {
	switch c.OnUnknown {
	case messages.ReadOnly, messages.Rerun:
		d.runAgain(c, "restart")
	case messages.Reconcile:
		if d.s.lost == nil {
			d.s.lost = make(map[lostCall]bool)
		}
		d.s.lost[lostCall{c.Turn, c.ID, c.Attempt}] = true
	default:
		d.emit(messages.ToolUnknown{Turn: c.Turn, Call: c.ID, Reason: "its process was lost while it ran: it may or may not have had its effect"})
	}
}

// runAgain starts a lost call once more, unless it was lost too often.
func (d *decision) runAgain(c *projections.CallState, reason string) {
	if _, ok := d.env.Definition.Tools[c.Tool]; !ok && c.OnUnknown != messages.ReadOnly {
		d.emit(messages.ToolUnknown{Turn: d.s.Turn.ID, Call: c.ID, Reason: "its process was lost while it ran, and its tool is not defined any more"})
		return
	}
	if c.Attempt <= maxRestarts {
		d.startTool(c, reason)
		return
	}
	d.emit(messages.ToolFailed{
		Turn: d.s.Turn.ID, Call: c.ID, Kind: "restarts",
		Message: fmt.Sprintf("its process was lost %d times while it ran: it may or may not have had its effect", c.Attempt),
	})
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
