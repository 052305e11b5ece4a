package turn

import (
	"cmp"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// resume ends the pause of a turn, continues a failed turn in a new one, and
// sets new limits, also of a turn that runs.
func (d *decision) resume(c messages.Resume) error {
	s := d.s
	newest := cmp.Or(s.Turn, s.Ended)
	if newest != nil && c.Turn != "" && c.Turn != newest.ID {
		return messages.Refuse(messages.Conflict, "turn %s is not the newest: turn %s is", c.Turn, newest.ID)
	}
	if s.Turn != nil {
		return d.resumeRunning(c)
	}
	failed := newest != nil && newest.Phase == projections.Failed
	switch {
	case !failed && c.AgentLimits != messages.LimitOverrides{} && c.LimitOverrides != messages.LimitOverrides{}:
		return messages.Refuse(messages.Conflict, "no turn waits for new limits: set those of the agent alone (agent_limits)")
	case !failed && c.AgentLimits != messages.LimitOverrides{}:
		d.override("", messages.ScopeAgent, c.AgentLimits, c.Reason)
		return nil
	case len(s.Inputs.Queued) > 0: // others are about to begin
		return messages.Refuse(messages.Busy, "inputs are waiting, and the next turn is about to begin: no earlier one can continue")
	case newest == nil:
		return d.noop(c, "there is no turn to resume")
	case !failed:
		return d.noop(c, "turn %s is finished", newest.ID)
	}
	return d.continueFailed(c, newest)
}

func (d *decision) resumeRunning(c messages.Resume) error {
	t := d.s.Turn
	raises := c.LimitOverrides != messages.LimitOverrides{} || c.AgentLimits != messages.LimitOverrides{}
	reason, forCalls := t.Paused(), pausedForCalls(t)
	switch {
	case reason == "" && !raises:
		return d.noop(c, "turn %s is running", t.ID)
	case forCalls && !raises:
		return d.noop(c, "%s", waitsFor(t))
	case reason == "", forCalls, reason == projections.PausedHook, reason == projections.PausedFork, reason == projections.PausedImport: // the last three may not need another model call
	default:
		own, _ := d.budgets()
		if err := d.refuseResume(c, t.ID, own); err != nil {
			return err
		}
	}
	d.override(t.ID, messages.ScopeTurn, c.LimitOverrides, c.Reason)
	d.override(t.ID, messages.ScopeAgent, c.AgentLimits, c.Reason)
	switch {
	case forCalls:
	case reason != "":
		d.emit(messages.TurnResumed{Turn: t.ID, MaxSteps: c.MaxSteps, Reason: c.Reason})
		d.startClock()
	case c.MaxDuration != 0 || c.AgentLimits.MaxDuration != 0:
		d.stopClock()
		d.startClock()
	}
	return nil
}

// waitsFor returns what a turn that is paused for calls waits for, and what to do.
func waitsFor(t *projections.TurnState) string {
	for i := range t.Calls {
		if c := &t.Calls[i]; c.WaitsBelow() {
			for _, w := range c.Child.Waiting {
				if w.Kind == messages.WaitPaused {
					return fmt.Sprintf("turn %s waits for agent %s, whose turn %s is paused (%s): resume that", t.ID, w.Agent, w.Turn, w.Reason)
				}
			}
		}
	}
	return fmt.Sprintf("turn %s waits for a decision about call %v: decide it", t.ID, t.Waiting())
}

// override records limits that a person has set, if any.
func (d *decision) override(turn messages.TurnID, scope messages.Scope, r messages.LimitOverrides, reason string) {
	if r != (messages.LimitOverrides{}) {
		d.emit(messages.BudgetRaised{Turn: turn, Scope: scope, Limits: r.Limits(), Reason: reason})
	}
}

func (d *decision) continueFailed(c messages.Resume, e *projections.TurnState) error {
	steps := e.Steps
	if e.Model != nil { // a step whose model call failed is made again
		steps = max(steps-1, 0)
	}
	own := budget{messages.ScopeTurn, e.Limits, e.Used}
	own.used.Steps = steps
	if err := d.refuseResume(c, e.ID, own); err != nil {
		return err
	}
	d.configure()
	d.override("", messages.ScopeAgent, c.AgentLimits, c.Reason)
	d.begin(messages.TurnStarted{ToolChoice: e.ToolChoice, Continues: e.ID, Steps: steps, Reason: c.Reason, Trace: e.Span(d.env.Agent)}, e.Limits.Override(c.LimitOverrides.Limits()))
	return nil
}
