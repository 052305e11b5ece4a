package turn

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// hooked records what a hook wants, as far as it wants anything.
func (d *decision) hooked(h HookDecision, call messages.CallID) {
	if h.Do == "" || h.Do == HookContinue && h.Reason == "" && h.Text == "" {
		return
	}
	t := d.s.Turn
	ev := messages.HookDecided{
		Turn: t.ID, Step: t.Steps, Hook: h.Hook, Point: h.Point, Call: call,
		Decision: string(h.Do), Reason: h.Reason, Arguments: h.Arguments,
	}
	switch h.Do {
	case HookContinue:
		ev.Note = h.Text
	case HookFinish:
		ev.Answer = h.Text
	case HookSkip:
		if h.Point == projections.PointTurnStart || h.Point == string(BeforeModel) {
			ev.Answer = h.Text
		}
	case HookRewrite:
		if h.Point == string(TurnEnd) {
			ev.Answer = h.Text
		}
	}
	d.emit(ev)
}

// asked goes on after the hooks at a point.
func (d *decision) asked(o HooksAsked) {
	t := d.s.Turn
	if p := d.s.asking(); p == "" || p != o.Point {
		return
	}
	d.s.hook = hookPoint{}
	if o.Point == TurnEnd && (t.Exhausted() != "" || d.over(t.Limits, d.agentLimits()).Limit != "") {
		o.Decisions = unheeded(o.Decisions)
	}
	output, answered := d.output()
	steered, asked := len(d.s.Inputs.Steered) > 0 && t.HookAnswer == nil, t.Again
	failed := d.tell(o.Decisions)
	switch {
	case o.Point == TurnEnd && !answered: // by a new definition
		d.advance()
	case o.Point == TurnEnd:
		d.ending(o, output, steered, asked)
	case failed != "":
		d.fail("hook", failed)
	case t.HookAnswer != nil || t.Held != "":
		d.advance()
	default:
		d.askModel(o)
	}
}

// askModel goes on to the model call that hooks were asked about, unless an
// input was cancelled meanwhile that it was for or that they have put into their
// request, or no limit allows it any more and the turn has its answer.
func (d *decision) askModel(o HooksAsked) {
	t := d.s.Turn
	if _, answered := d.output(); answered && !t.Again && (len(d.s.Inputs.Steered) == 0 || d.over(t.Limits, d.agentLimits()).Limit != "") {
		d.proceed()
		return
	}
	for _, id := range o.Seen {
		if o.Request != "" && !slices.ContainsFunc(d.s.Inputs.Steered, func(q projections.Input) bool { return q.ID == id }) {
			d.request() // they are asked again
			return
		}
	}
	if !d.limited() {
		d.requestModel(o.Request, o.Seen)
	}
}

// unheeded is the decisions at the end of a turn that can make no model call
// any more: what a hook would have the model read is left out.
func unheeded(list []HookDecision) []HookDecision {
	list = slices.Clone(list)
	for i := range list {
		if h := &list[i]; h.Do == HookContinue && h.Text != "" {
			h.Text, h.Reason = "", strings.TrimSpace(h.Reason+" (not heeded: a limit is reached)")
		}
	}
	return list
}

// holdHere pauses the turn because a hook wants a person.
func (d *decision) holdHere() {
	d.pause(projections.PausedHook, d.s.Turn.Held+"; resume the turn to go on", nil)
}

// tell records decisions that are about no call, and gives the words of the
// first hook that broke.
func (d *decision) tell(list []HookDecision) (failed string) {
	for _, h := range list {
		d.hooked(h, "")
		if h.Do == HookFailed && failed == "" {
			failed = "hook " + h.Hook + " failed: " + h.Reason
		}
	}
	return failed
}

// ending goes on after the hooks at a turn's end; output is what the turn would
// have answered without them. There is another model call if a hook asks to go
// on, or if an input has steered the turn meanwhile and none wants to finish, as far as
// the limits allow it: that is what bounds it. asked says that a hook asked to
// go on before and that others have answered in the model's place: not again.
func (d *decision) ending(o HooksAsked, output projections.Output, steered, asked bool) {
	t := d.s.Turn
	again, paused := false, false
	for _, h := range o.Decisions {
		paused = paused || h.Do == HookPause
		again = again || h.Do == HookContinue && h.Text != "" && !asked
		steered = steered && h.Do != HookFinish
	}
	switch {
	case paused || t.Held != "" && t.HookAnswer == nil:
		d.holdHere()
	case (again || steered) && t.Exhausted() == "" && d.over(t.Limits, d.agentLimits()).Limit == "":
		d.request()
	default:
		if now, done := d.output(); done {
			output = now
		}
		d.complete(output)
	}
}
