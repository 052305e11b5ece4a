package turn

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// move is something that an agent does by itself, once a command or an outcome is recorded.
type move int

const (
	wait move = iota // for an outcome, a command, or the agent's next owner
	startTurn
	resumeTurn
	pauseTurn
	failTurn
	completeTurn
	skipCalls
	startCall
	compactHistory
	reachLimit
	askHooks
	requestModel
)

// step is a move with what it needs.
type step struct {
	move
	reason, message string              // of a pause; reason also of a compaction
	calls           []messages.CallID   // that a pause is for
	call            messages.CallID     // to start
	cut             projections.Cut     // that a compaction makes
	reached         projections.Reached // limit
	point           Point               // where hooks are asked
	output          projections.Output  // that the turn completes with
}

// run takes one step after the other until the agent waits.
func (d *decision) run() {
	for st := d.next(); st.move != wait; st = d.next() {
		d.take(st)
	}
}

func (d *decision) take(st step) {
	t := d.s.Turn
	switch st.move {
	case startTurn:
		d.start(d.s.Inputs.Queued[0])
	case resumeTurn:
		d.unpause()
	case pauseTurn:
		d.pause(st)
	case failTurn:
		d.fail(t.Reached.Limit, t.Reached.Message+raiseIt)
	case completeTurn:
		d.complete(st.output)
	case skipCalls:
		d.skipCalls()
	case startCall:
		d.startTool(t.Call(st.call), "")
	case compactHistory:
		d.compact(st.cut, d.keep(0), st.reason)
	case reachLimit:
		d.exhaust(st.reached)
	case askHooks:
		d.s.asking = st.point
	case requestModel:
		d.requestModel()
	}
}

// maxStarts is how many turns one decision begins. Turns that fail at their start
// follow one another, and what follows from one command must fit into a frame.
const maxStarts = 3

// next returns the one thing that the agent must do now. Its cases, then those of nextCall,
// nextRequest and nextModelCall, stand in the order of the table in the package's documentation.
func (d *decision) next() step {
	s, t := d.s, d.s.Turn
	switch {
	case d.env.Definition.Unknown:
		return step{}
	case t == nil && (len(s.Inputs.Queued) == 0 || d.starts == maxStarts):
		return step{}
	case t == nil:
		return step{move: startTurn}
	case t.Paused() != "" && !pauseIsOver(t):
		return step{}
	case t.Paused() != "":
		return step{move: resumeTurn}
	case t.Reached != nil && !d.env.Definition.PauseAtLimit:
		return step{move: failTurn}
	case t.Model != nil && t.Model.Phase != projections.ModelDue, s.asking != "":
		return step{}
	case s.Summary != nil && s.Summary.Turn == t.ID && t.Reached != nil:
		return pauseForLimit(t)
	case s.Summary != nil && s.Summary.Turn == t.ID:
		return step{}
	}
	return d.nextCall(t)
}

// nextCall returns what to do about the calls of the newest step, and what comes after them
// once each has its outcome.
func (d *decision) nextCall(t *projections.TurnState) step {
	unstarted := t.Count(projections.CallRequested) + t.Count(projections.CallWaiting)
	if t.HookAnswer != nil && unstarted > 0 {
		return step{move: skipCalls}
	}
	if c := d.startable(t); c != nil && t.Held == "" && t.Reached == nil {
		return step{move: startCall, call: c.ID}
	}
	switch {
	case t.UnderWay() > 0:
		return step{}
	case t.Held != "" && (t.HookAnswer == nil || d.endHooksWant(HookPause)):
		return step{move: pauseTurn, reason: projections.PausedHook, message: t.Held + "; resume the turn to go on"}
	case t.Reached != nil && unstarted > 0:
		return pauseForLimit(t)
	case t.Count(projections.CallRequested) > 0: // they are left to the agent's next owner
		return step{}
	case len(t.Waiting()) > 0:
		return pauseForCalls(t)
	}
	return d.nextRequest(t)
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

// nextRequest returns what to do when every call has its outcome: what leads to the next model
// call, or to the end of the turn.
func (d *decision) nextRequest(t *projections.TurnState) step {
	output, answered := d.output()
	switch {
	case !answered, d.wantsAnotherCall(t) && d.withinLimits(t):
		return d.nextModelCall(t)
	case d.env.Definition.HooksAt(TurnEnd) && d.asked.Point != TurnEnd:
		return step{move: askHooks, point: TurnEnd}
	}
	return step{move: completeTurn, output: output}
}

// nextModelCall returns what to do for the next model call. Hooks that were asked about it have
// seen its request, which is not compacted after that.
func (d *decision) nextModelCall(t *projections.TurnState) step {
	asked := d.modelHooksAsked()
	if !asked {
		if cut, reason := d.tooLarge(t); cut.Upto != 0 {
			return step{move: compactHistory, cut: cut, reason: reason}
		}
	}
	if t.Reached != nil {
		return pauseForLimit(t)
	}
	if o := d.limited(); o.Limit != "" {
		return step{move: reachLimit, reached: o}
	}
	if d.env.Definition.HooksAt(BeforeModel) && !asked {
		return step{move: askHooks, point: BeforeModel}
	}
	return step{move: requestModel}
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

// pauseIsOver reports whether a turn that is paused for calls can continue: one may start, one
// runs, or each has its outcome. Other pauses end with a resume alone.
func pauseIsOver(t *projections.TurnState) bool {
	switch t.Paused() {
	case projections.PausedApproval, projections.PausedUnknown, projections.PausedChild:
		return t.Count(projections.CallRequested) > 0 || t.UnderWay() > 0 || len(t.Waiting()) == 0
	}
	return false
}

// pauseForLimit is the pause of a turn that has reached a limit.
func pauseForLimit(t *projections.TurnState) step {
	return step{move: pauseTurn, reason: t.Reached.Limit, message: t.Reached.Message + raiseIt}
}

// pauseForCalls is the pause of a turn whose calls wait for a person.
func pauseForCalls(t *projections.TurnState) step {
	st := step{move: pauseTurn, calls: t.Waiting()}
	unknown := t.Count(projections.CallUnknown) > 0
	switch {
	case t.Count(projections.CallWaiting) > 0 && unknown:
		st.reason, st.message = projections.PausedApproval, "a person must approve or deny what waits, and say what became of what was lost"
	case t.Count(projections.CallWaiting) > 0:
		st.reason, st.message = projections.PausedApproval, "a person must approve or deny what waits"
	case unknown:
		st.reason, st.message = projections.PausedUnknown, "a person must say what became of what was lost"
	default:
		st.reason, st.message = projections.PausedChild, "a person must settle what its children wait for"
	}
	return st
}
