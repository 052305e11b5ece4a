package projections

import "github.com/reprise-dev/reprise/messages"

// HookAction is what a hook may want.
type HookAction string

// The actions.
const (
	HookContinue HookAction = "continue"
	HookRewrite  HookAction = "rewrite"
	HookSkip     HookAction = "skip"
	HookPause    HookAction = "pause"
	HookFinish   HookAction = "finish"
	HookFailed   HookAction = "failed" // the hook broke; Reason is why
)

// hookDecided folds what a hook wants of the turn. What it wants of a call is in the events
// behind it, but for new arguments.
func (t *TurnState) hookDecided(ev messages.HookDecided) {
	end := ev.Point == messages.PointTurnEnd
	switch HookAction(ev.Decision) {
	case HookPause:
		t.hooked(ev)
		t.hold(ev)
	case HookFinish:
		if !end {
			t.HookAnswer = &ev.Answer
		} else if ev.Answer != "" {
			t.answer(ev.Answer)
		}
	case HookSkip:
		if ev.Point == messages.PointTurnStart || ev.Point == messages.PointBeforeModel {
			t.HookAnswer = &ev.Answer
		}
	case HookRewrite:
		if end && (ev.Arguments == "" || t.Call(ev.Call) == nil) {
			t.answer(ev.Answer)
		}
	case HookContinue:
		t.hooked(ev)
		if end && ev.Note != "" && t.Again == "" {
			t.again(ev.Hook)
		}
	}
}

// answer replaces the answer that the turn has at its end.
func (t *TurnState) answer(text string) {
	if t.HookAnswer != nil {
		t.HookAnswer = &text
		return
	}
	t.Answer = &Output{Text: text}
}

// again folds a hook's wish for another model call: what the turn has answered holds if it may
// make none.
func (t *TurnState) again(hook string) {
	if t.Again = hook; t.HookAnswer != nil {
		t.Answer, t.HookAnswer = &Output{Text: *t.HookAnswer}, nil
	}
}

// hold keeps the turn where it is until a person resumes it. The pause of a
// call before it runs asks for its approval, and holds nothing else.
func (t *TurnState) hold(ev messages.HookDecided) {
	if ev.Call != "" && ev.Point != messages.PointAfterTool {
		return
	}
	t.Held = &Hold{ev.Hook, ev.Reason}
}

// Hold is a hook's wish that a person resumes the turn.
type Hold struct {
	Hook, Reason string
}

// String returns it for a person.
func (h *Hold) String() string {
	if h.Reason == "" {
		return "hook " + h.Hook + " asked for a person"
	}
	return "hook " + h.Hook + " asked for a person: " + h.Reason
}

// hooked records a hook that is not asked again at this point until the next model call or
// steered input: a turn that one of them has paused comes back to the same point.
func (t *TurnState) hooked(ev messages.HookDecided) {
	switch ev.Point {
	case messages.PointTurnStart, messages.PointBeforeModel, messages.PointTurnEnd:
		t.Hooked = append(t.Hooked, string(ev.Point)+"/"+ev.Hook)
	}
}
