package actors

import (
	"context"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/projections"
)

// act brings what runs in line with the state: it begins the effects that are new and cancels
// those that are no longer listed.
func (a *agent) act() {
	a.reportDrained()
	if a.broken != nil {
		return
	}
	effects := a.state.Effects()
	if a.def.turn.Unknown() {
		effects = a.state.Ends()
	}
	a.cease(effects)
	for _, e := range effects {
		if !a.awaits(e) {
			a.running = append(a.running, begun{e, a.begin(e)})
		}
	}
}

// begun is an effect whose outcome is awaited.
type begun struct {
	effect turn.Effect
	cancel func()
}

// awaits reports whether an effect was begun and its outcome has not come.
func (a *agent) awaits(e turn.Effect) bool {
	return slices.ContainsFunc(a.running, func(b begun) bool { return b.effect == e })
}

// asksModel reports whether an effect is a model call that is yet to begin.
func (a *agent) asksModel(e turn.Effect) bool {
	return (e.Do == turn.CallModel || e.Do == turn.Summarize) && !a.awaits(e)
}

// cease cancels what is no longer listed. It need not wait for the log as a beginning must:
// should the next append fail, the agent stops anyway, and what ran is recovered as after a
// crash.
func (a *agent) cease(effects []turn.Effect) {
	a.cancelEffects(func(e turn.Effect) bool { return !slices.Contains(effects, e) })
}

// cancelEffects cancels those of the running effects that over reports on.
func (a *agent) cancelEffects(over func(turn.Effect) bool) {
	a.running = slices.DeleteFunc(a.running, func(b begun) bool {
		if over(b.effect) {
			b.cancel()
			return true
		}
		return false
	})
	if len(a.running) == 0 {
		a.running = nil
	}
}

// begin starts an effect outside the mailbox and returns what cancels it.
func (a *agent) begin(e turn.Effect) func() {
	switch e.Do {
	case turn.Wait:
		timer := time.AfterFunc(time.Until(e.Until), func() { a.report(e, e.Due()) })
		return func() { timer.Stop() }
	case turn.CallModel:
		return a.beginModel(e)
	case turn.Summarize:
		return a.beginSummary(e)
	case turn.AskHooks:
		return a.beginHooks(e)
	case turn.Begin:
		a.report(e, turn.Continue{})
	case turn.RunTool:
		return a.beginTool(e)
	case turn.Reconcile:
		return a.beginReconcile(e)
	case turn.Send:
		return a.send(e)
	}
	return func() {}
}

// run does work in a goroutine and reports its result, or that of lost if work panics or ends
// its goroutine.
func (a *agent) run(e turn.Effect, lost func() any, work func(context.Context) any) (cancel func()) {
	ctx, cancel := context.WithCancel(a.ctx)
	ctx, release := a.rt.memory.With(ctx)
	a.rt.dispatcher.run(func() {
		defer release() // the result is small by then
		var result any
		returned := false
		defer func() {
			if !returned {
				result = lost()
			}
			a.report(e, result)
		}()
		r, err := protect(a.log, func() (any, error) { return work(ctx), nil })
		result, returned = r, err == nil
	})
	return cancel
}

// grace is how long what was cancelled may take to notice that.
const grace = 5 * time.Second

// runWithin does work as run does. After limit it reports late in its place, and leaves what
// does not return to itself. To store a result may take longer.
func (a *agent) runWithin(limit time.Duration, e turn.Effect, late any, lost func() any, work func(context.Context) any) (cancel func()) {
	overdue := time.AfterFunc(limit, func() { a.report(e, late) })
	stop := a.run(e, lost, func(ctx context.Context) any {
		result := work(ctx)
		overdue.Stop()
		return a.offload(ctx, claim(ctx, result))
	})
	return func() { overdue.Stop(); stop() }
}

// report hands over what came of an effect. It may be called from any goroutine.
func (a *agent) report(e turn.Effect, result any) {
	if a.outcomes.add(outcome{e, result}) {
		a.root.Send(a.self, outcomesWait{})
	}
}

// call returns the state's record of the effect's tool call.
func (a *agent) call(e turn.Effect) projections.CallState {
	for _, c := range a.state.Turn.Calls {
		if c.ID == e.Call {
			return c
		}
	}
	return projections.CallState{ToolCall: projections.ToolCall{ID: e.Call}}
}
