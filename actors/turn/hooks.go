package turn

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// hooked records what a hook decided, unless it changed nothing.
func (d *decision) hooked(h HookDecision, call messages.CallID) {
	if h.Do == "" || h.Do == HookContinue && h.Reason == "" && h.Text == "" {
		return
	}
	t := d.s.Turn
	ev := messages.HookDecided{
		Turn: t.ID, Step: t.Steps, Hook: h.Hook, Point: h.Point, Call: call,
		Decision: string(h.Do), Reason: h.Reason, Arguments: h.Arguments,
	}
	switch {
	case h.Do == HookContinue:
		ev.Note = h.Text
	case h.Do == HookFinish,
		h.Do == HookSkip && (h.Point == messages.PointTurnStart || h.Point == messages.PointBeforeModel),
		h.Do == HookRewrite && h.Point == messages.PointTurnEnd:
		ev.Answer = h.Text
	}
	d.emit(ev)
}

// hooksAsked records what the hooks at a point decided. One that failed fails the turn, except at
// the turn's end. It reports false if the turn does not wait for them.
func (d *decision) hooksAsked(o HooksAsked) bool {
	if o.Point == "" || o.Point != d.s.asking {
		return false
	}
	d.s.asking = ""
	if o.Point == TurnEnd && !d.withinLimits(d.s.Turn) {
		o.Decisions = withoutNotes(o.Decisions)
	}
	d.asked = o
	if failed := d.decided(o.Decisions, ""); failed != "" && o.Point == BeforeModel {
		d.fail(messages.FailedHook, failed)
	}
	return true
}

// withoutNotes returns the decisions at the end of a turn that can make no model call any more,
// without the notes for the model.
func withoutNotes(list []HookDecision) []HookDecision {
	list = slices.Clone(list)
	for i := range list {
		if h := &list[i]; h.Do == HookContinue && h.Text != "" {
			h.Text, h.Reason = "", strings.TrimSpace(h.Reason+" (not applied: a limit is reached)")
		}
	}
	return list
}

// decided records what hooks decided about a call, or about none, and returns the message of
// the first one that failed.
func (d *decision) decided(list []HookDecision, call messages.CallID) (failed string) {
	for _, h := range list {
		d.hooked(h, call)
		if h.Do == HookFailed && failed == "" {
			failed = "hook " + h.Hook + " failed: " + h.Reason
		}
	}
	return failed
}
