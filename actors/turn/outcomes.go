package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// maxRestarts is how often one step's model call may be lost with its process
// before the turn is failed, and how often one tool call: a call that kills its
// process must not do so for ever.
const maxRestarts = 10

// outcome records what came of an effect. It reports false, and changes nothing, if that is not
// awaited any more.
func (d *decision) outcome(o any) bool {
	n := d.s.Last
	switch o := o.(type) {
	case Recover:
		d.recover()
		return true
	case Continue:
		return true
	case HooksAsked:
		return d.hooksAsked(o)
	case MessageStored:
		d.stored(o)
	case ScheduleDue:
		if sc := d.s.Timers.Next(); sc != nil && sc.Timer == o.Timer && sc.At.Equal(o.At) {
			d.fire(*sc)
		}
	case Summarized:
		if c := d.s.Summary; c != nil && c.Call == o.Call {
			d.summarized(*c, o)
		}
	case SummaryErred:
		if c := d.s.Summary; c != nil && c.Call == o.Call {
			d.summaryErred(*c, o)
		}
	default:
		if d.s.Turn != nil {
			d.turnOutcome(o)
		}
	}
	return d.s.Last != n
}

// turnOutcome records what came of an effect of the running turn.
func (d *decision) turnOutcome(o any) {
	switch o := o.(type) {
	case TimerDue:
		d.fired(o.Timer)
	case ModelAnswered:
		if d.awaits(o.Call) {
			d.answered(o)
		}
	case ModelErred:
		if d.awaits(o.Call) {
			d.erred(o)
		}
	case ToolReturned:
		if c := d.runs(o.Call, o.Attempt); c != nil {
			d.emit(messages.ToolCompleted{Turn: c.Turn, Call: c.ID, Output: o.Output, Blob: o.Blob})
			d.decidedAboutCall(c, o.Hooks)
		}
	case ToolErred:
		if c := d.runs(o.Call, o.Attempt); c != nil {
			d.emit(messages.ToolFailed{Turn: c.Turn, Call: c.ID, Kind: o.Kind, Message: o.Message})
			d.decidedAboutCall(c, o.Hooks)
		}
	case ToolReconciled:
		d.reconciled(o)
	}
}

// awaits reports whether the model call is the one under way.
func (d *decision) awaits(call messages.CallID) bool {
	m := d.s.Turn.Model
	return m != nil && m.ID == call && m.UnderWay()
}

// runs returns the tool call if that attempt of it is under way; else nil.
func (d *decision) runs(call messages.CallID, attempt int) *projections.CallState {
	c := d.s.Turn.Call(call)
	if c == nil || c.Outcome != projections.CallRunning || c.Attempt != attempt || d.s.isLost(c) || c.Child != nil {
		return nil
	}
	return c
}

func (d *decision) answered(o ModelAnswered) {
	t := d.s.Turn
	m := t.Model
	items := UniqueCalls(o.Items, t.CallIDs)
	cost := d.env.Definition.Prices[m.Model].Cost(o.Usage)
	finish := finishOf(o.Finish, items)
	d.emit(messages.ModelCompleted{Turn: t.ID, Step: t.Steps, Call: o.Call, Items: items, Finish: finish, Model: o.Model, Usage: o.Usage, Cost: cost, Blob: o.Blob})
	d.settle(m, o.Usage, cost, o.Usage == messages.Usage{})
	failed := d.decidedAboutTurn(o.Hooks)
	for _, item := range items {
		if item.Type == messages.ItemCall {
			d.emit(messages.ToolRequested{Turn: t.ID, Step: t.Steps, Call: item.CallID, Tool: item.Name, Arguments: item.Arguments})
			switch c := t.Call(item.CallID); {
			case messages.CutOff(finish):
				d.cutOff(c, finish)
			case failed == "" && t.HookAnswer == nil: // else none of them will run
				d.judge(c, o.Judged[item.CallID])
			}
		}
	}
	if failed != "" {
		d.fail("hook", failed)
	}
}

// UniqueCalls gives every call an id that no other call of the turn has: some
// servers leave it empty or count from zero in each answer. used are the ids of
// the turn so far. Calls whose ids are unique keep them.
func UniqueCalls(items []messages.Item, used []messages.CallID) []messages.Item {
	used = slices.Clone(used)
	items = slices.Clone(items)
	for i := range items {
		if items[i].Type != messages.ItemCall {
			continue
		}
		id := items[i].CallID
		if id == "" {
			id = "call"
		}
		for n, base := 2, id; slices.Contains(used, id) || items[i].CallID == "" && id == "call"; n++ {
			id = messages.CallID(fmt.Sprintf("%s_%d", base, n-1))
		}
		items[i].CallID = id
		used = append(used, id)
	}
	return items
}

// judge gives a call that cannot run or must not its outcome, and asks for approval of one that
// needs it.
func (d *decision) judge(c *projections.CallState, j Judgement) {
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

func (d *decision) erred(o ModelErred) {
	t := d.s.Turn
	m, def := t.Model, d.env.Definition
	failed := messages.ModelFailed{
		Turn: t.ID, Step: t.Steps, Attempt: m.Attempt, Call: o.Call, Kind: o.Kind, Message: o.Message,
		Status: o.Status, Shown: o.Shown, Usage: o.Usage, Cost: def.Prices[m.Model].Cost(o.Usage),
	}
	at := stored(d.env.Now.Add(retryDelay(m.Failures+1, o.RetryAfter, d.env.Jitter)))
	if d.triesAgain(m, o, at) {
		failed.RetryAt = &at
	}
	d.emit(failed)
	d.settle(m, o.Usage, failed.Cost, o.Begun && o.Usage == messages.Usage{}) // one that broke off has used something
	next := d.fallback(m.Model)
	switch {
	case failed.RetryAt != nil:
		d.setTimer(projections.TimerID(projections.ForRetry, m.ID), projections.ForRetry, m.ID, at)
	case o.Kind == projections.ContextLength && !m.Shortened && d.shrink():
	case next != "" && !o.Ours:
		d.emit(messages.ModelSwitched{Turn: t.ID, Step: t.Steps, From: m.Model, To: next, Reason: o.Kind + ": " + o.Message})
	default:
		d.failModel(o)
	}
}

// triesAgain reports whether a model that has failed is asked again, at a time. If that is
// beyond the turn's end, or its server asks for a longer wait than we would choose ourselves,
// a model that can take over does so instead.
func (d *decision) triesAgain(m *projections.PendingModel, o ModelErred, at time.Time) bool {
	if !o.Temporary || m.Failures+1 >= d.env.Definition.MaxAttempts {
		return false
	}
	deadline := d.s.Timers.OfTurn(projections.DurationTimer)
	long := o.RetryAfter > retryMost || deadline != nil && !at.Before(deadline.At)
	return !long || d.fallback(m.Model) == ""
}

// fallback returns the model to ask after one that is not tried again: the next of the list
// that does not stand before the failed one, too. Empty: none.
func (d *decision) fallback(failed string) string {
	def := d.env.Definition
	chain := append([]string{def.Model}, def.Fallbacks...)
	at := slices.Index(chain, failed)
	for _, next := range chain[at+1:] {
		if at >= 0 && !slices.Contains(chain[:at+1], next) {
			return next
		}
	}
	return ""
}

// Retries of model calls: exponential with equal jitter (half of the delay is
// spread), never earlier than the server asked for, unless that is later than minutes: no
// server may stop an agent for longer.
// See M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
const (
	retryBase = 500 * time.Millisecond
	retryMost = 30 * time.Second
	retryCap  = 5 * time.Minute
)

func retryDelay(failures int, after time.Duration, jitter float64) time.Duration {
	delay := min(retryBase<<min(failures-1, 16), retryMost)
	delay = delay/2 + time.Duration(jitter*float64(delay/2))
	return min(max(delay, after), retryCap)
}

func (d *decision) reconciled(o ToolReconciled) {
	t := d.s.Turn
	c := t.Call(o.Call)
	if c == nil || c.Outcome != projections.CallRunning || !d.s.isLost(c) {
		return
	}
	switch o.Outcome {
	case messages.OutcomeCompleted:
		d.emit(messages.ToolCompleted{Turn: t.ID, Call: c.ID, Output: o.Output, Blob: o.Blob, By: "reconcile"})
	case messages.OutcomeRetry:
		d.runAgain(c, "reconcile")
	default:
		d.emit(messages.ToolUnknown{Turn: t.ID, Call: c.ID, Reason: "its process was lost while it ran, and the tool cannot tell what became of it"})
	}
}

// recover records what a crash or takeover has cut off. A call that was lost is treated as its
// OnUnknown says.
func (d *decision) recover() {
	t, summary := d.s.Turn, d.s.Summary
	if summary != nil && summary.Turn == "" {
		d.lostSummary()
	}
	if t == nil || t.Paused() != "" {
		return
	}
	if tm := d.s.Timers.OfTurn(projections.DurationTimer); tm != nil && !d.env.Now.Before(tm.At) {
		if d.fired(projections.DurationTimer); t.Reached != nil && !d.env.Definition.PauseAtLimit {
			return // the turn fails
		}
	}
	if summary != nil && summary.Turn == t.ID && t.Reached == nil { // else the turn is paused without it
		d.lostSummary()
	}
	if t.Model != nil && t.Model.UnderWay() {
		d.restart(t.Model)
		return
	}
	for i := range t.Calls {
		if c := &t.Calls[i]; c.Outcome == projections.CallRunning && c.Child == nil { // what a child does is not lost
			d.lostCall(c)
		}
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

func (d *decision) restart(m *projections.PendingModel) {
	t := d.s.Turn
	d.emit(messages.ModelRestarted{Turn: t.ID, Step: t.Steps, Call: m.ID, Reason: "its process was lost before the answer was recorded"})
	d.settleLost(m)
	if t.Model.Restarts > maxRestarts {
		d.fail("restarts", fmt.Sprintf("the model call was lost with its process %d times", t.Model.Restarts))
	}
}
