package verify

import (
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// What is noted as taken from the record.
const (
	hooks      = "decisions of hooks"
	approvals  = "decisions of tools about the approval that their calls require"
	requests   = "requests that hooks have made"
	finals     = "failed model calls that were not tried again, whose failure may have been temporary"
	unmade     = "failed model calls after which no fallback was asked, whose request may have been one that no model can be sent"
	redactions = "hashes of texts that were redacted"
	noops      = "commands that changed nothing"
	foreigns   = "imported steps of agents whose kind is not defined here"
	pasts      = "tombstones whose past is removed"
	left       = "calls that an owner has left to the next one, as it was leaving"
)

// outcomeOf returns the outcome that the first events of rest come of.
func (s *stream) outcomeOf(rest []messages.Event) (o any, d *Difference) {
	switch ev := rest[0].(type) {
	case messages.ModelCompleted:
		return s.answered(ev, rest), nil
	case messages.ModelFailed:
		return s.erred(ev, s.span(rest)), nil
	case messages.HistoryCompacted:
		if c := s.state.Summary; c != nil && c.Call == ev.Call {
			return turn.Summarized{Call: ev.Call, Text: ev.Text, Usage: ev.Usage}, nil
		}
	case messages.CompactionFailed:
		return s.unsummarized(ev, s.span(rest)), nil
	case messages.ToolCompleted:
		return s.completed(ev, rest)
	case messages.ToolFailed:
		if c := s.running(ev.Call); c != nil {
			return s.failed(c, ev, rest)
		}
	case messages.ToolStarted:
		if ev.Reason == string(messages.ByReconcile) {
			return s.reconciled(turn.ToolReconciled{Call: ev.Call, Outcome: messages.OutcomeRetry})
		}
	case messages.ToolUnknown:
		if c := s.running(ev.Call); c != nil && s.runs(ev.Call) { // a fork has no result of it
			return turn.ToolReturned{Call: ev.Call, Attempt: c.Attempt, Unknown: ev.Reason}, nil
		}
		return s.reconciled(turn.ToolReconciled{Call: ev.Call})
	case messages.TimerFired:
		return s.due(ev), nil
	case messages.ChildReported:
		if m := s.state.Outbox.Report(ev.Input); m != nil {
			return turn.MessageStored{ID: m.ID}, nil
		}
	}
	return s.continued(rest)
}

// answered returns a model's answer, and what hooks and tools have made of its calls.
func (s *stream) answered(ev messages.ModelCompleted, rest []messages.Event) turn.ModelAnswered {
	o := turn.ModelAnswered{
		Call: ev.Call, Items: ev.Items, Finish: ev.Finish, Model: ev.Model, Usage: ev.Usage, Blob: ev.Blob,
		Reviewed: make(map[messages.CallID]turn.Review),
	}
	review := func(call messages.CallID, change func(*turn.Review)) {
		r, ok := o.Reviewed[call]
		if ok {
			change(&r)
			o.Reviewed[call] = r
		}
	}
	span := s.span(rest)
	for _, ev := range span {
		switch ev := ev.(type) {
		case messages.HookDecided:
			s.note(hooks, 1)
			if hook := decided(ev); ev.Call != "" {
				review(ev.Call, func(r *turn.Review) { r.Hooks = append(r.Hooks, hook) })
			} else if waitsFor(ev.Point) == "" {
				o.Hooks = append(o.Hooks, hook)
			}
		case messages.ToolRequested:
			o.Reviewed[ev.Call] = turn.Review{Free: true}
		case messages.ToolSkipped:
			review(ev.Call, func(r *turn.Review) { skipped(r, ev.Reason) })
		case messages.ToolFailed:
			if ev.Kind == messages.ToolFailureBadArguments {
				review(ev.Call, func(r *turn.Review) { r.Misfit = ev.Message })
			}
		case messages.ApprovalRequested:
			review(ev.Call, asks)
		case messages.ApprovalGranted:
			review(ev.Call, asks)
		case messages.ApprovalDenied:
			review(ev.Call, asks)
		}
	}
	s.reviewAgain(span, o)
	return o
}

// reviewAgain has the tools decide about the calls of an answer. Where hooks have decided something,
// which may have kept a tool from being asked, the record stands.
func (s *stream) reviewAgain(span []messages.Event, o turn.ModelAnswered) {
	hooked := slices.ContainsFunc(span, func(ev messages.Event) bool { _, is := ev.(messages.HookDecided); return is })
	for _, ev := range span {
		call, is := ev.(messages.ToolRequested)
		if !is {
			continue
		}
		if s.current.Review != nil && !hooked {
			if r, ok := s.current.Review(call.Tool, call.Arguments); ok {
				o.Reviewed[call.Call] = r
				continue
			}
		}
		if s.current.Turn.Tools[call.Tool].Approval == turn.ApproveAsked {
			s.note(approvals, 1)
		}
	}
}

// asks notes that the tool requires approval of a call.
func asks(r *turn.Review) { r.Free = false }

// skipped sets the text of the newest hook's decision, if it has skipped the call.
func skipped(r *turn.Review, text string) {
	if n := len(r.Hooks) - 1; n >= 0 && r.Hooks[n].Do == turn.HookSkip {
		r.Hooks[n].Text = text
	}
}

// decided returns the decision of a hook as its hook has made it.
func decided(ev messages.HookDecided) turn.HookDecision {
	d := turn.HookDecision{
		Hook: ev.Hook, Point: ev.Point, Do: turn.HookAction(ev.Decision), Reason: ev.Reason, Text: ev.Answer, Arguments: ev.Arguments,
	}
	if d.Do == turn.HookContinue {
		d.Text = ev.Note
	}
	return d
}

// waitsFor returns the point at which a turn waits for hooks of that point; empty if their
// decisions are a part of another outcome.
func waitsFor(p messages.HookPoint) turn.Point {
	switch p {
	case messages.PointTurnStart, messages.PointBeforeModel:
		return turn.BeforeModel
	case messages.PointTurnEnd:
		return turn.TurnEnd
	}
	return ""
}

// erred returns a failed attempt at a model call. How long a retry waits is taken from the record.
func (s *stream) erred(ev messages.ModelFailed, span []messages.Event) turn.ModelErred {
	o := turn.ModelErred{
		Call: ev.Call, Kind: ev.Kind, Message: ev.Message, Status: ev.Status, Shown: ev.Shown, Usage: ev.Usage,
		Temporary: ev.RetryAt != nil,
	}
	switched, ended := false, false
	for _, ev := range span {
		switch ev := ev.(type) {
		case messages.BudgetSettled:
			o.Unknown = ev.Unknown
		case messages.ModelSwitched:
			switched = true
		case messages.TurnFailed:
			ended = true
		}
	}
	if ended && !switched && len(s.current.Turn.Fallbacks) > 0 && !s.known.changed(s.state.Life.Definition, "fallbacks") {
		o.Ours = true
		s.note(unmade, 1)
	}
	if ev.RetryAt != nil {
		o.RetryAfter = ev.RetryAt.Sub(s.now(span))
	} else if t := s.state.Turn; t != nil && t.Model != nil && t.Model.Failures+1 < s.current.Turn.MaxAttempts {
		s.note(finals, 1)
	}
	return o
}

// unsummarized returns what came of a summary that failed.
func (s *stream) unsummarized(ev messages.CompactionFailed, span []messages.Event) any {
	if ev.Kind == messages.ModelFailureChanged {
		return turn.Summarized{Call: ev.Call, Usage: ev.Usage}
	}
	o := turn.ModelErred{Call: ev.Call, Kind: ev.Kind, Message: ev.Message, Usage: ev.Usage, Unknown: ev.Unknown}
	if next, ok := first(span[1:]).(messages.CompactionRequested); ok {
		o.Temporary = true
		if next.NotBefore != nil {
			o.RetryAfter = next.NotBefore.Sub(s.now(span))
		}
	}
	return o
}

// running returns the call if its tool runs here, or did when its process was lost; else nil.
func (s *stream) running(id messages.CallID) *projections.CallState {
	if t := s.state.Turn; t != nil {
		if c := t.Call(id); c != nil && c.Outcome == projections.CallRunning && c.Child == nil {
			return c
		}
	}
	return nil
}

// runs reports whether the tool of a call runs here.
func (s *stream) runs(id messages.CallID) bool {
	return slices.ContainsFunc(s.state.Effects(), func(e turn.Effect) bool { return e.Do == turn.RunTool && e.Call == id })
}

// completed returns where the result of a call comes from.
func (s *stream) completed(ev messages.ToolCompleted, rest []messages.Event) (any, *Difference) {
	if ev.By == messages.ByReconcile {
		return s.reconciled(turn.ToolReconciled{Call: ev.Call, Outcome: messages.OutcomeCompleted, Output: ev.Output, Blob: ev.Blob})
	}
	if c := s.running(ev.Call); c != nil {
		return turn.ToolReturned{Call: ev.Call, Attempt: c.Attempt, Output: ev.Output, Blob: ev.Blob, Hooks: s.after(ev.Call, rest)}, nil
	}
	for _, m := range s.state.Outbox.Messages {
		if m.Kind == projections.TaskMessage && m.Call == ev.Call { // a detached child has begun
			return turn.MessageStored{ID: m.ID}, nil
		}
	}
	return s.continued(rest)
}

func (s *stream) failed(c *projections.CallState, ev messages.ToolFailed, rest []messages.Event) (any, *Difference) {
	if ev.Kind == messages.ToolFailureRestarts {
		return s.reconciled(turn.ToolReconciled{Call: ev.Call, Outcome: messages.OutcomeRetry})
	}
	return turn.ToolReturned{Call: ev.Call, Attempt: c.Attempt, Failed: ev.Kind, Output: ev.Message, Hooks: s.after(ev.Call, rest)}, nil
}

// after returns what hooks decided about the result of a call.
func (s *stream) after(call messages.CallID, rest []messages.Event) (list []turn.HookDecision) {
	for _, ev := range rest[1:] {
		hook, ok := ev.(messages.HookDecided)
		if !ok || hook.Call != call || hook.Point != messages.PointAfterTool {
			break
		}
		list = append(list, decided(hook))
		s.note(hooks, 1)
	}
	return list
}

// reconciled returns o once its call is one of a lost process.
func (s *stream) reconciled(o turn.ToolReconciled) (any, *Difference) {
	lost := func(e turn.Effect) bool { return e.Do == turn.Reconcile && e.Call == o.Call }
	if slices.ContainsFunc(s.state.Effects(), lost) {
		return o, nil
	}
	return o, s.restarted()
}

// restarted loses everything that no event records, as an activation under the same owner does
// that has nothing to append.
func (s *stream) restarted() *Difference {
	s.state.Restart()
	_, d := s.part(turn.Recover{}, nil, nil)
	return d
}

// due returns the timer that has fired.
func (s *stream) due(ev messages.TimerFired) turn.TimerDue {
	o := turn.TimerDue{Turn: ev.Turn, Timer: ev.Timer}
	if ev.Turn == "" {
		if sc := s.state.Timers.Schedule(ev.Timer); sc != nil {
			o.At = sc.At
		}
	}
	return o
}

// continued returns the outcome of events that name none: what hooks decided that the turn waits
// for, or that the agent does what it has left.
func (s *stream) continued(rest []messages.Event) (any, *Difference) {
	point := s.asking()
	if hook, ok := rest[0].(messages.HookDecided); ok && point == "" && waitsFor(hook.Point) != "" {
		if d := s.restarted(); d != nil {
			return nil, d
		}
		point = s.asking()
	}
	if point == "" {
		return turn.Continue{}, nil
	}
	return s.hooksAsked(point, rest), nil
}

// asking returns the point at which the turn waits for hooks; empty if it does not.
func (s *stream) asking() turn.Point {
	for _, e := range s.state.Effects() {
		if e.Do == turn.AskHooks {
			return e.Point
		}
	}
	return ""
}

// hooksAsked returns what the hooks at a point decided. A request that hooks have made is taken
// from the record.
func (s *stream) hooksAsked(point turn.Point, rest []messages.Event) turn.HooksAsked {
	o := turn.HooksAsked{Point: point, Seen: s.state.Inputs.SteeredIDs()}
	rewritten, leading := false, true
	for _, ev := range s.span(rest) {
		switch ev := ev.(type) {
		case messages.HookDecided:
			if leading && waitsFor(ev.Point) == point {
				o.Decisions = append(o.Decisions, decided(ev))
				rewritten = rewritten || ev.Point == messages.PointBeforeModel && turn.HookAction(ev.Decision) == turn.HookRewrite
				s.note(hooks, 1)
			}
			continue
		case messages.ModelRequested:
			o.Seen = slices.DeleteFunc(o.Seen, func(id string) bool { return !slices.Contains(ev.Inputs, id) })
			if rewritten {
				o.Request, o.Rewritten, o.RewrittenBlob = ev.Request, ev.Rewritten, ev.RewrittenBlob
				s.note(requests, 1)
			}
		}
		leading = false
	}
	if rewritten && leading { // nothing came of it: an input that was part of their request was cancelled
		o.Request, o.Seen = "none", []string{""}
		s.note(requests, 1)
	}
	return o
}
