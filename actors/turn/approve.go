package turn

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// gate asks for approval of a call, or finds that a person has decided for all
// calls of the tool. A remembered grant is not enough for a call that is
// singled out, by a hook or because it repeats another one.
func (d *decision) gate(c *projections.CallState, reason string, singled bool) {
	t := d.s.Turn
	if r, ok := d.s.Decisions.Of(c.Tool); ok && !(r.Decision == projections.Granted && singled) {
		if r.Decision == projections.Granted {
			d.emit(messages.ApprovalGranted{Turn: t.ID, Call: c.ID, Tool: c.Tool, By: "remembered"})
		} else {
			d.refuse(c, messages.ApprovalDenied{By: "remembered", Text: r.Text})
		}
		return
	}
	ev := messages.ApprovalRequested{
		Turn: t.ID, Call: c.ID, Tool: c.Tool, Arguments: c.Arguments, ArgsHash: messages.HashArguments(c.Arguments), Reason: reason,
	}
	expiry := d.env.Definition.Tools[c.Tool].Expiry
	if expiry == 0 {
		d.emit(ev)
		return
	}
	at := stored(d.env.Now.Add(expiry))
	ev.ExpiresAt = &at
	d.emit(ev)
	d.setTimer(projections.TimerID(projections.ForApproval, c.ID), projections.ForApproval, c.ID, at)
}

// refuse gives a call a text instead of a result. ev holds what is particular.
func (d *decision) refuse(c *projections.CallState, ev messages.ApprovalDenied) {
	ev.Turn, ev.Call, ev.Tool = d.s.Turn.ID, c.ID, c.Tool
	d.cancel(projections.TimerID(projections.ForApproval, c.ID))
	d.emit(ev)
	d.emit(messages.ToolDenied{Turn: ev.Turn, Call: ev.Call, Message: ev.Text})
}

func (d *decision) approve(c messages.Approve) error {
	below := messages.ChildDecided{ArgsHash: c.ArgsHash, Remember: c.Remember, Reason: c.Reason}
	if done, err := d.forward(c, c.Turn, c.Call, messages.WaitApproval, below); done {
		return err
	}
	call, err := d.undecided(c, c.Turn, c.Call, c.ArgsHash, projections.Granted)
	if call == nil || err != nil {
		return err
	}
	d.cancel(projections.TimerID(projections.ForApproval, call.ID))
	d.emit(messages.ApprovalGranted{Turn: d.s.Turn.ID, Call: call.ID, Tool: call.Tool, By: "decision", Remember: c.Remember, Reason: c.Reason})
	d.why = c.Reason
	return nil
}

func (d *decision) deny(c messages.Deny) error {
	below := messages.ChildDecided{ArgsHash: c.ArgsHash, Text: c.Text, Remember: c.Remember, Reason: c.Reason}
	if done, err := d.forward(c, c.Turn, c.Call, messages.WaitApproval, below); done {
		return err
	}
	call, err := d.undecided(c, c.Turn, c.Call, c.ArgsHash, projections.Denied)
	if call == nil || err != nil {
		return err
	}
	text := messages.DeniedText
	if c.Text != nil {
		text = *c.Text
	}
	d.refuse(call, messages.ApprovalDenied{By: "decision", Text: text, Remember: c.Remember, Reason: c.Reason})
	d.why = c.Reason
	return nil
}

// undecided is the call that waits for approval. The same decision once more
// is a no-op and gives nil; any other call is refused.
func (d *decision) undecided(c messages.Command, turn messages.TurnID, id messages.CallID, hash, want string) (*projections.CallState, error) {
	var call *projections.CallState
	if t := d.s.Turn; t != nil && (turn == "" || turn == t.ID) {
		call = t.Call(id)
	}
	switch {
	case call == nil:
		return nil, messages.Refuse(messages.NotFound, "no call %q is waiting for approval", id)
	case hash != "" && hash != messages.HashArguments(call.Arguments):
		return nil, messages.Refuse(messages.Conflict, "the arguments of call %q are not those that were decided about: look at it again; nothing was changed", id)
	case call.Outcome == projections.CallWaiting:
		return call, nil
	case call.Approval == want:
		return nil, d.noop(c, "call %q was %s before", id, call.Approval)
	case call.Approval != "":
		return nil, messages.Refuse(messages.Conflict, "call %q was %s before: that cannot be changed any more", id, call.Approval)
	}
	return nil, messages.Refuse(messages.Conflict, "call %q does not wait for approval", id)
}

func (d *decision) forget(c messages.Forget) error {
	if _, ok := d.s.Decisions.Of(c.Tool); !ok {
		return d.noop(c, "no decision about tool %q is remembered", c.Tool)
	}
	d.emit(messages.ApprovalForgotten{Tool: c.Tool, Reason: c.Reason})
	return nil
}

// decide gives a call whose outcome is unknown the one that a person knows.
func (d *decision) decide(c messages.Decide) error {
	below := messages.ChildDecided{Outcome: c.Outcome, Result: c.Result, Reason: c.Reason}
	if done, err := d.forward(c, c.Turn, c.Call, messages.WaitUnknown, below); done {
		return err
	}
	t := d.s.Turn
	var call *projections.CallState
	if t != nil && (c.Turn == "" || c.Turn == t.ID) {
		call = t.Call(c.Call)
	}
	switch {
	case call == nil:
		return messages.Refuse(messages.NotFound, "no call %q is waiting for a decision", c.Call)
	case call.Outcome == projections.CallWaiting:
		return messages.Refuse(messages.Conflict, "call %q waits for approval: approve or deny it", c.Call)
	case call.Outcome != projections.CallUnknown:
		return messages.Refuse(messages.Conflict, "call %q is not waiting for a decision", c.Call)
	case c.Outcome != messages.OutcomeCompleted && c.Outcome != messages.OutcomeFailed && c.Outcome != messages.OutcomeRetry:
		return messages.Refuse(messages.BadInput, "outcome %q: write completed, failed or retry", c.Outcome)
	case c.Outcome == messages.OutcomeRetry && d.env.Definition.Tools[call.Tool] == (Tool{}):
		return messages.Refuse(messages.Conflict, "call %q cannot run again: tool %q is not defined any more", c.Call, call.Tool)
	case c.Outcome == messages.OutcomeRetry && (t.Held != "" || t.Exhausted() != ""):
		return messages.Refuse(messages.Conflict, "call %q cannot run again while turn %s is paused for another reason: resume it first", c.Call, t.ID)
	case c.Outcome == messages.OutcomeRetry && d.env.Leaving && d.env.Definition.Tools[call.Tool].mustEnd():
		return messages.Refuse(messages.Unavailable, "call %q cannot run again yet: its agent is changing hands; try again", c.Call)
	case c.Outcome == messages.OutcomeRetry && t.UnderWay() >= d.env.Definition.Parallel:
		return messages.Refuse(messages.Busy, "call %q cannot run again yet: as many tools run as may at once; try again when one has ended", c.Call)
	}
	switch d.why = c.Reason; c.Outcome {
	case messages.OutcomeCompleted:
		d.emit(messages.ToolCompleted{Turn: t.ID, Call: c.Call, Output: c.Result, By: "decision"})
	case messages.OutcomeFailed:
		message := c.Result
		if message == "" {
			message = "it failed"
		}
		d.emit(messages.ToolFailed{Turn: t.ID, Call: c.Call, Kind: "error", Message: message, By: "decision"})
	case messages.OutcomeRetry:
		if t.Paused() != "" {
			d.unpause()
		}
		d.startTool(call, "decision")
	}
	return nil
}
