package turn

import (
	"cmp"
	"strconv"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// numbered returns the id of what begins with event n.
func numbered(prefix string, n messages.EventNumber) string {
	return string(strconv.AppendUint(append(make([]byte, 0, 24), prefix...), uint64(n), 10))
}

// configure records that the agent is created, if it does not exist, and a definition that is new
// to it.
func (d *decision) configure() {
	if d.s.Last == 0 || d.s.Life.Deleted != nil {
		d.emit(messages.AgentCreated{Agent: d.env.Agent.Full(), Parent: d.parent})
	}
	if def := d.env.Definition; !def.Unknown() && d.s.Life.Definition != def.Digest {
		d.emit(messages.AgentConfigured{Definition: def.Digest, Model: def.Model})
	}
}

// start begins the turn of a waiting input.
func (d *decision) start(q projections.Input) {
	d.starts, d.asked = d.starts+1, HooksAsked{}
	if d.env.Next != nil {
		d.env.Definition = *d.env.Next
	}
	d.configure()
	def, choice := d.env.Definition, q.Options.ToolChoice
	if choice == "" {
		choice = def.ToolChoice
	}
	if choice == "auto" {
		choice = ""
	}
	limits := tighter(def.TurnLimits, d.s.limitsOf(q.ID))
	limits.MaxSteps = cmp.Or(q.Options.MaxSteps, def.MaxSteps)
	d.begin(messages.TurnStarted{Inputs: []string{q.ID}, ToolChoice: choice, Trace: q.Trace}, limits)
}

// begin records the start of a turn with these limits, and sets its clock.
func (d *decision) begin(ev messages.TurnStarted, limits messages.Limits) {
	ev.Turn, ev.Definition, ev.MaxSteps = messages.TurnAt(d.number()), d.s.Life.Definition, limits.MaxSteps
	ev.Limits = limits
	ev.Limits.MaxSteps = 0
	d.emit(ev)
	d.startClock()
}

// complete ends the turn with its answer.
func (d *decision) complete(output projections.Output) {
	d.requeue("its turn ended before a model had seen it")
	d.cancelTimers()
	t := d.s.Turn
	d.emit(messages.TurnCompleted{Turn: t.ID, Inputs: d.s.TurnInputs(), Output: output.Text, Blob: output.Blob, Finish: output.Finish, Steps: t.Steps, Usage: t.Total()})
}

// fail ends the turn without an answer, and gives open calls an outcome.
func (d *decision) fail(reason, message string) {
	d.failAs(messages.TurnFailed{Reason: reason, Message: message})
}

// failAs is fail with an event that holds the reason.
func (d *decision) failAs(ev messages.TurnFailed) {
	d.withhold(&ev)
	d.endCalls("the turn failed")
	d.requeue("its turn failed before a model had seen it")
	d.cancelTimers()
	t := d.s.Turn
	ev.Turn, ev.Inputs, ev.Steps, ev.Usage = t.ID, d.s.TurnInputs(), t.Steps, t.Total()
	d.emit(ev)
}

// requeue puts steered inputs that no model call has seen back into the queue.
func (d *decision) requeue(reason string) {
	t := d.s.Turn
	for len(d.s.Inputs.Steered) > 0 {
		d.emit(messages.InputRequeued{Input: d.s.Inputs.Steered[0].ID, Turn: t.ID, Reason: reason})
	}
}

// pause makes the turn wait for a person, who must decide about these calls if there are any. The
// clock of its duration stops.
func (d *decision) pause(reason, message string, calls ...messages.CallID) {
	d.dropSummary(d.s.Turn.ID, "the turn was paused")
	d.stopClock()
	d.emit(messages.TurnPaused{Turn: d.s.Turn.ID, Reason: reason, Calls: calls, Message: message})
}

// unpause ends a pause that was for calls.
func (d *decision) unpause() {
	d.emit(messages.TurnResumed{Turn: d.s.Turn.ID, Reason: d.why})
	d.startClock()
}
