package turn

import (
	"cmp"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// requireApproval asks for approval of a call, or applies the remembered decision about all calls
// of its tool. A remembered grant is not enough for a call that is singled out, by a hook or
// because it repeats another one.
func (d *decision) requireApproval(c *projections.CallState, reason string, singled bool) {
	t := d.s.Turn
	if r, ok := d.s.Decisions.Of(c.Tool); ok && !(r.Decision == projections.Granted && singled) {
		if r.Decision == projections.Granted {
			d.emit(messages.ApprovalGranted{Turn: t.ID, Call: c.ID, Tool: c.Tool, By: messages.ByRemembered})
		} else {
			d.denyCall(c, messages.ApprovalDenied{By: messages.ByRemembered, Text: r.Text})
		}
		return
	}
	ev := messages.ApprovalRequested{
		Turn: t.ID, Call: c.ID, Tool: c.Tool, Arguments: c.Arguments, ArgsHash: messages.HashArguments(c.Arguments), Reason: reason,
	}
	if expiry := d.env.Definition.Tools[c.Tool].Expiry; expiry != 0 {
		at := logTime(d.env.Now.Add(expiry))
		ev.ExpiresAt = &at
	}
	d.emit(ev)
	if ev.ExpiresAt != nil {
		d.setTimer(projections.ForApproval, c.ID, *ev.ExpiresAt)
	}
}

// denyCall records a text in place of a call's result. ev holds who denied it and why.
func (d *decision) denyCall(c *projections.CallState, ev messages.ApprovalDenied) {
	ev.Turn, ev.Call, ev.Tool = d.s.Turn.ID, c.ID, c.Tool
	d.cancelTimer(projections.TimerID(projections.ForApproval, c.ID))
	d.emit(ev)
	d.emit(messages.ToolDenied{Turn: ev.Turn, Call: ev.Call, Message: ev.Text})
}

func (d *decision) approve(c messages.Approve) error {
	call, err := d.undecided(c, messages.ChildDecided{Of: c.Turn, Waits: c.Call, ArgsHash: c.ArgsHash, Remember: c.Remember, Reason: c.Reason}, projections.Granted)
	if call == nil {
		return err
	}
	d.cancelTimer(projections.TimerID(projections.ForApproval, call.ID))
	d.emit(messages.ApprovalGranted{Turn: d.s.Turn.ID, Call: call.ID, Tool: call.Tool, By: messages.ByDecision, Remember: c.Remember, Reason: c.Reason})
	d.why = c.Reason
	return nil
}

func (d *decision) deny(c messages.Deny) error {
	call, err := d.undecided(c, messages.ChildDecided{Of: c.Turn, Waits: c.Call, ArgsHash: c.ArgsHash, Text: c.Text, Remember: c.Remember, Reason: c.Reason}, projections.Denied)
	if call == nil {
		return err
	}
	text := messages.DeniedText
	if c.Text != nil {
		text = *c.Text
	}
	d.denyCall(call, messages.ApprovalDenied{By: messages.ByDecision, Text: text, Remember: c.Remember, Reason: c.Reason})
	d.why = c.Reason
	return nil
}

// undecided returns the call of this agent that a decision is about. Nil without an error: the
// decision was forwarded to another agent, or the same one was made before.
func (d *decision) undecided(c messages.Command, ev messages.ChildDecided, want string) (*projections.CallState, error) {
	if done, err := d.forward(c, messages.WaitApproval, ev); done {
		return nil, err
	}
	call := d.s.call(ev.Of, ev.Waits)
	switch {
	case call == nil:
		return nil, messages.Refuse(messages.NotFound, "no call %q is waiting for approval", ev.Waits)
	case ev.ArgsHash != "" && ev.ArgsHash != messages.HashArguments(call.Arguments):
		return nil, otherArguments(ev.Waits)
	case call.Outcome == projections.CallWaiting:
		return call, nil
	case call.Approval == want:
		return nil, d.noop(c, "call %q was %s before", ev.Waits, call.Approval)
	case call.Approval != "":
		return nil, messages.Refuse(messages.Conflict, "call %q was %s before: that cannot be changed any more", ev.Waits, call.Approval)
	}
	return nil, messages.Refuse(messages.Conflict, "call %q does not wait for approval", ev.Waits)
}

// call returns a call of the newest step of the running turn; nil if there is none. An empty turn
// is the running one.
func (s *State) call(turn messages.TurnID, id messages.CallID) *projections.CallState {
	if t := s.Turn; t != nil && (turn == "" || turn == t.ID) {
		return t.Call(id)
	}
	return nil
}

// otherArguments returns the refusal of a decision about other arguments than those of the call.
func otherArguments(id messages.CallID) error {
	return messages.Refuse(messages.Conflict, "the arguments of call %q are not those that were decided about: look at it again; nothing was changed", id)
}

func (d *decision) forget(c messages.Forget) error {
	if _, ok := d.s.Decisions.Of(c.Tool); !ok {
		return d.noop(c, "no decision about tool %q is remembered", c.Tool)
	}
	d.emit(messages.ApprovalForgotten{Tool: c.Tool, Reason: c.Reason})
	return nil
}

// decide sets the outcome that a person has found out of a call whose outcome is unknown.
func (d *decision) decide(c messages.Decide) error {
	if done, err := d.forward(c, messages.WaitUnknown, messages.ChildDecided{Of: c.Turn, Waits: c.Call, Outcome: c.Outcome, Result: c.Result, Reason: c.Reason}); done {
		return err
	}
	call := d.s.call(c.Turn, c.Call)
	switch {
	case call == nil:
		return messages.Refuse(messages.NotFound, "no call %q is waiting for a decision", c.Call)
	case call.Outcome == projections.CallWaiting:
		return messages.Refuse(messages.Conflict, "call %q waits for approval: approve or deny it", c.Call)
	case call.Outcome != projections.CallUnknown:
		return messages.Refuse(messages.Conflict, "call %q is not waiting for a decision", c.Call)
	}
	switch d.why = c.Reason; c.Outcome {
	case messages.OutcomeCompleted:
		d.emit(messages.ToolCompleted{Turn: call.Turn, Call: call.ID, Output: c.Result, By: messages.ByDecision})
	case messages.OutcomeFailed:
		d.emit(messages.ToolFailed{Turn: call.Turn, Call: call.ID, Kind: messages.ToolFailureError, Message: cmp.Or(c.Result, "it failed"), By: messages.ByDecision})
	case messages.OutcomeRetry:
		return d.retryUnknown(call)
	default:
		return messages.Refuse(messages.BadInput, "outcome %q: write completed, failed or retry", c.Outcome)
	}
	return nil
}

// retryUnknown starts a call again whose outcome is unknown, because a person has decided so.
func (d *decision) retryUnknown(c *projections.CallState) error {
	t := d.s.Turn
	switch tool, defined := d.env.Definition.Tools[c.Tool]; {
	case !defined:
		return messages.Refuse(messages.Conflict, "call %q cannot run again: tool %q is not defined any more", c.ID, c.Tool)
	case t.Held != nil || t.Exhausted() != "":
		return messages.Refuse(messages.Conflict, "call %q cannot run again while turn %s is paused for another reason: resume it first", c.ID, t.ID)
	case d.env.Leaving && tool.mustEnd():
		return messages.Refuse(messages.Unavailable, "call %q cannot run again yet: its agent is changing hands; try again", c.ID)
	case t.UnderWay() >= d.env.Definition.Parallel:
		return messages.Refuse(messages.Busy, "call %q cannot run again yet: as many tools run as may at once; try again when one has ended", c.ID)
	}
	if t.Paused() != "" {
		d.unpause()
	}
	d.startTool(c, string(messages.ByDecision))
	return nil
}
