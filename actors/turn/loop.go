package turn

import (
	"slices"

	"github.com/reprise-dev/reprise/projections"
)

// maxStarts is how many turns one decision begins. Turns that fail at their start
// follow one another, and what follows from one command must fit into a frame.
const maxStarts = 3

// run takes one step after the other until the agent waits.
func (d *decision) run() {
	for d.step() {
	}
}

// step does the one thing that the agent must do now. It reports false if that is to wait: for an
// outcome, a command, or the agent's next owner. Its cases, then those of stepCalls, stepRequest
// and stepModel, are in the order of the table in the package's documentation.
func (d *decision) step() bool {
	s, t := d.s, d.s.Turn
	switch {
	case d.env.Definition.Unknown():
		return false
	case t == nil && (len(s.Inputs.Queued) == 0 || d.starts == maxStarts):
		return false
	case t == nil:
		d.start(s.Inputs.Queued[0])
	case t.Paused() != "" && !pauseIsOver(t):
		return false
	case t.Paused() != "":
		d.unpause()
	case t.Exceeded != nil && !d.env.Definition.PauseAtLimit:
		d.fail(string(t.Exceeded.Limit), t.Exceeded.Message+resumeHigher)
	case t.Model != nil && t.Model.Phase != projections.ModelDue, s.asking != "":
		return false
	case s.Summary != nil && s.Summary.Turn == t.ID && t.Exceeded != nil:
		d.pauseForLimit()
	case s.Summary != nil && s.Summary.Turn == t.ID:
		return false
	default:
		return d.stepCalls(t)
	}
	return true
}

// stepCalls does what the calls of the newest step require, and what comes after them once each
// has its outcome.
func (d *decision) stepCalls(t *projections.TurnState) bool {
	unstarted := t.Count(projections.CallRequested) + t.Count(projections.CallWaiting)
	if t.HookAnswer != nil && unstarted > 0 {
		d.skipCalls()
		return true
	}
	if c := d.startable(t); c != nil && t.Held == nil && t.Exceeded == nil {
		d.startTool(c, "")
		return true
	}
	switch {
	case t.UnderWay() > 0:
		return false
	case t.Held != nil && (t.HookAnswer == nil || d.endHooksWant(HookPause)):
		d.pause(projections.PausedHook, t.Held.String()+"; resume the turn to continue")
	case t.Exceeded != nil && unstarted > 0:
		d.pauseForLimit()
	case t.Count(projections.CallRequested) > 0: // they are left to the agent's next owner
		return false
	case len(t.Waiting()) > 0:
		d.pauseForCalls()
	default:
		return d.stepRequest(t)
	}
	return true
}

// startable returns the first call that may start; nil if none may. An agent that is about to
// go to another owner starts none that must not be cut off.
func (d *decision) startable(t *projections.TurnState) *projections.CallState {
	if t.UnderWay() >= d.env.Definition.Parallel {
		return nil
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		left := d.env.Leaving && d.env.Definition.Tools[c.Tool].mustEnd()
		if c.Outcome == projections.CallRequested && !left {
			return c
		}
	}
	return nil
}

// stepRequest does what leads from calls with outcomes to the next model call, or to the end of
// the turn.
func (d *decision) stepRequest(t *projections.TurnState) bool {
	output, answered := d.s.Output(d.env.Definition)
	switch {
	case !answered, d.wantsAnotherCall(t) && d.withinLimits(t):
		return d.stepModel(t)
	case d.env.Definition.HooksAt(TurnEnd) && d.asked.Point != TurnEnd:
		d.s.asking = TurnEnd
	default:
		d.complete(output)
	}
	return true
}

// stepModel does what comes before the next model call, or requests it. Hooks that were asked
// about the call have seen its request, which is not compacted after that.
func (d *decision) stepModel(t *projections.TurnState) bool {
	asked := d.modelHooksAsked()
	if !asked {
		if cut, reason := d.tooLarge(t); cut.Upto != 0 {
			d.compact(cut, d.keep(0), reason)
			return true
		}
	}
	limit := d.limited()
	switch {
	case t.Exceeded != nil:
		d.pauseForLimit()
	case limit.Limit != "":
		d.exhaust(limit)
	case d.env.Definition.HooksAt(BeforeModel) && !asked:
		d.s.asking = BeforeModel
	default:
		d.requestModel()
	}
	return true
}

// wantsAnotherCall reports whether a turn that has its answer wants another model call: for a
// hook at its end, or for inputs that steer it. The answer of a hook, and a hook at the end that
// finishes the turn, leave such inputs to a turn of their own.
func (d *decision) wantsAnotherCall(t *projections.TurnState) bool {
	return t.HookAnswer == nil && (t.Again != "" || len(d.s.Inputs.Steered) > 0 && !d.endHooksWant(HookFinish))
}

// endHooksWant reports whether a hook at the turn's end has just decided for the action.
func (d *decision) endHooksWant(a HookAction) bool {
	return d.asked.Point == TurnEnd && slices.ContainsFunc(d.asked.Decisions, func(h HookDecision) bool { return h.Do == a })
}

// modelHooksAsked reports whether hooks have just been asked about the next model call. Their
// request does not hold if an input that is part of it was cancelled meanwhile.
func (d *decision) modelHooksAsked() bool {
	return d.asked.Point == BeforeModel && (d.asked.Request == "" || !slices.ContainsFunc(d.asked.Seen, func(id string) bool {
		return !slices.Contains(d.s.Inputs.SteeredIDs(), id)
	}))
}

// pausedForCalls reports whether the turn is paused because calls wait for a person. Other pauses
// end with a resume alone.
func pausedForCalls(t *projections.TurnState) bool {
	switch t.Paused() {
	case projections.PausedApproval, projections.PausedUnknown, projections.PausedChild:
		return true
	}
	return false
}

// pauseIsOver reports whether a turn that is paused for calls can continue: one may start, one
// runs, or each has its outcome.
func pauseIsOver(t *projections.TurnState) bool {
	return pausedForCalls(t) && (t.Count(projections.CallRequested) > 0 || t.UnderWay() > 0 || len(t.Waiting()) == 0)
}

// pauseForLimit pauses a turn that has reached a limit.
func (d *decision) pauseForLimit() {
	r := d.s.Turn.Exceeded
	d.pause(string(r.Limit), r.Message+resumeHigher)
}

// pauseForCalls pauses a turn whose calls wait for a person.
func (d *decision) pauseForCalls() {
	t := d.s.Turn
	approve, decide := t.Count(projections.CallWaiting) > 0, t.Count(projections.CallUnknown) > 0
	reason, message := projections.PausedChild, "a person must decide what its children wait for"
	switch {
	case approve && decide:
		reason, message = projections.PausedApproval, "a person must approve or deny what waits, and decide what became of what was lost"
	case approve:
		reason, message = projections.PausedApproval, "a person must approve or deny what waits"
	case decide:
		reason, message = projections.PausedUnknown, "a person must decide what became of what was lost"
	}
	d.pause(reason, message, t.Waiting()...)
}
