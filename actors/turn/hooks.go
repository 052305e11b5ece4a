package turn

import (
	"github.com/reprise-dev/reprise/messages"
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
		if h.Point == pointTurnStart || h.Point == string(BeforeModel) {
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
	if t.hook == "" || t.hook != o.Point {
		return
	}
	t.hook = ""
	output, _ := d.output()
	failed := d.tell(o.Decisions)
	switch {
	case o.Point == TurnEnd:
		d.ending(o, output)
	case failed != "":
		d.fail("hook", failed)
	case t.finish != nil || t.held != "":
		d.advance()
	case !d.limited():
		d.requestModel(o.Request, o.Seen)
	}
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
// have answered without them. One that asks to go on gets another model call if
// the limits allow it: that is what bounds it.
func (d *decision) ending(o HooksAsked, output string) {
	t := d.s.Turn
	again := false
	for _, h := range o.Decisions {
		again = again || h.Do == HookContinue && h.Text != ""
	}
	switch {
	case t.held != "":
		d.advance()
	case again && t.exhausted == "" && d.over(t.Limits, d.agentLimits()).limit == "":
		d.request()
	default:
		if now, done := d.output(); done {
			output = now
		}
		d.complete(output)
	}
}
