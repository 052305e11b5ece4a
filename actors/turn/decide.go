package turn

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Decide answers a command (a messages.Command) or an outcome with the events
// to append, and folds them into s: the caller must append them before it acts
// on s, and drop s if it cannot. No events means that nothing is to be
// recorded. An error is a refusal (*messages.Error or *ProcessedError) and leaves s
// as it was. A messages.Delete is decided twice: without env.Upto, for a frame that has no
// command as its cause, and then with it and its Last zero, for the tombstone.
func (s *State) Decide(env Env, cmd any) ([]messages.Event, error) {
	d := &decision{s: s, env: env}
	if c, ok := cmd.(messages.Command); ok {
		if err := s.repeated(messages.IDOf(c)); err != nil {
			return nil, err
		}
		if err := d.command(c); err != nil {
			return nil, err
		}
	} else if !d.outcome(cmd) {
		return nil, nil
	}
	d.run()
	return d.events, nil
}

// decision gathers the events of one Decide, folding each as it is made.
type decision struct {
	s      *State
	env    Env
	events []messages.Event
	starts int // turns begun
	// asked is what the hooks that the turn has waited for decided. Its Point is empty: none did.
	asked HooksAsked
	// why is the reason for the end of a pause that was for calls.
	why string
	// parent is the agent that a new agent works for. Empty: none.
	parent string
	// spelt are arguments in their one spelling, by how they were written.
	spelt map[string]string
}

func (d *decision) emit(ev messages.Event) {
	d.events = append(d.events, ev)
	d.s.evolve(ev)
}

// number returns the number that the next event will have.
func (d *decision) number() messages.EventNumber { return d.s.Last + 1 }

// noop records that a command changed nothing.
func (d *decision) noop(c messages.Command, format string, args ...any) error {
	d.emit(messages.CommandNoop{Command: c.CommandType(), Reason: fmt.Sprintf(format, args...)})
	return nil
}

func (d *decision) command(c messages.Command) error {
	if err := d.refuseDeleted(c); err != nil {
		return err
	}
	switch c := c.(type) {
	case messages.Input:
		return d.input(c)
	case messages.Task:
		return d.task(c)
	case messages.Recall:
		return d.recall(c)
	case messages.SetState:
		d.configure()
		d.emit(messages.StatePatched{Patch: c.Patch, Reason: c.Reason})
		return nil
	}
	if d.s.Last == 0 {
		return messages.Refuse(messages.NotFound, "agent %s does not exist: nothing was ever sent to it", d.env.Agent)
	}
	switch c := c.(type) {
	case messages.Interrupt:
		return d.stop(c, c.Turn, c.Reason)
	case messages.Abort:
		return d.stop(c, c.Turn, c.Reason)
	case messages.Clear:
		d.clear(c)
		return nil
	case messages.Cancel:
		return d.takeBack(c)
	case messages.Compact:
		return d.compactHistory(c)
	case messages.Resume:
		return d.resume(c)
	case messages.Approve:
		return d.approve(c)
	case messages.Deny:
		return d.deny(c)
	case messages.Forget:
		return d.forget(c)
	case messages.Decide:
		return d.decide(c)
	case messages.Report:
		return d.report(c)
	case messages.Settled:
		return d.settled(c)
	case messages.Delete:
		return d.delete(c)
	}
	return messages.Refuse(messages.UnknownCommand, "command %q is unknown to this version", c.CommandType())
}

func (d *decision) input(in messages.Input) error {
	if in.Schedule != (messages.Schedule{}) {
		return d.schedule(in)
	}
	if err := d.refuseInput(in); err != nil {
		return err
	}
	d.accept(in, nil)
	return nil
}

// accept records an input that was not refused; parent is the call that it is the task of, nil
// for one from outside.
func (d *decision) accept(in messages.Input, parent *messages.Parent) {
	s, t := d.s, d.s.Turn
	accepted := messages.InputAccepted{
		Input: in.ID, Disposition: messages.Queued, Policy: in.Policy, Content: in.Content,
		Metadata: in.Metadata, Deadline: in.Deadline, Reply: in.Reply, Options: in.Options, Parent: parent,
	}
	if parent != nil {
		d.parent = parent.Agent
	}
	if t != nil && in.Policy == messages.PolicyInterrupt {
		d.abort("input", "a new input interrupted it", interruptNote(""))
	}
	switch {
	case in.Policy == messages.PolicyInterrupt, t == nil && len(s.Inputs.Queued) == 0:
		d.configure()
		accepted.Disposition, accepted.Turn = messages.Started, turnID(d.number()+1)
	case t != nil && in.Policy == messages.PolicySteer:
		accepted.Disposition, accepted.Turn = messages.Steered, t.ID
	}
	d.emit(accepted)
}

// maxEnds is how many bytes the ends of all inputs that an agent holds may take,
// and endSize how many one takes without its id: a clear ends them in one frame.
const (
	maxEnds = 256 << 10
	endSize = 120
)

// Refuses is the refusal of an input that Decide would not accept now; nil for one
// that it would, or whose id was processed.
func (s *State) Refuses(env Env, in messages.Input) error {
	d := &decision{s: s, env: env}
	if err := s.repeated(in.ID); err != nil {
		return err
	}
	if err := d.refuseDeleted(in); err != nil {
		return err
	}
	if in.Schedule != (messages.Schedule{}) {
		in.Content = nil // which may become small
		_, _, err := d.whenDue(in)
		return err
	}
	return d.refuseInput(in)
}

func (d *decision) refuseInput(in messages.Input) error {
	t, def := d.s.Turn, d.env.Definition
	waiting, size := len(d.s.Inputs.Queued), endSize+len(in.ID)
	for _, q := range d.s.Inputs.Queued {
		size += endSize + len(q.ID)
	}
	waiting += len(d.s.Inputs.Steered)
	for _, id := range d.s.TurnInputs() {
		size += endSize + len(id)
	}
	switch {
	case in.Deadline != nil && !d.env.Now.Before(*in.Deadline):
		return messages.Refuse(messages.Expired, "the deadline %s had passed when the input arrived", in.Deadline.UTC().Format("2006-01-02T15:04:05.000Z"))
	case t != nil && in.Policy == messages.PolicyReject:
		return messages.Refuse(messages.Busy, "agent %s is busy with turn %s and the input's policy is reject", d.env.Agent, t.ID)
	case len(d.s.Inputs.Queued) > 0 && in.Policy == messages.PolicyReject:
		return messages.Refuse(messages.Busy, "agent %s has inputs waiting and the input's policy is reject", d.env.Agent)
	case waiting >= def.MaxQueue && in.Policy != messages.PolicyInterrupt:
		return messages.Refuse(messages.QueueFull, "agent %s has %d inputs waiting, its limit (max_queue): try again later", d.env.Agent, waiting)
	case size > maxEnds, in.Policy == messages.PolicyInterrupt && size+inlineSize(in.Content)+len(in.Metadata) > maxEnds+maxEnds/2:
		return messages.Refuse(messages.QueueFull, "agent %s holds as many inputs as can end at once: try again later", d.env.Agent)
	}
	return d.refuseOptions(in.Options)
}

// refuseOptions refuses options that would lift the bounds of the definition.
func (d *decision) refuseOptions(o messages.InputOptions) error {
	def := d.env.Definition
	if o.MaxSteps > def.MaxSteps {
		return messages.Refuse(messages.BadInput, "options.max_steps is %d: the agent's own limit is %d, and an input may only ask for less", o.MaxSteps, def.MaxSteps)
	}
	if def.ToolChoice != "" && o.ToolChoice != "" && o.ToolChoice != def.ToolChoice {
		return messages.Refuse(messages.BadInput, "options.tool_choice %q: the agent's definition says %s, which an input cannot change", o.ToolChoice, def.ToolChoice)
	}
	switch choice := o.ToolChoice; choice {
	case "", "auto", "required", "none":
	default:
		if _, ok := def.Tools[choice]; !ok {
			return messages.Refuse(messages.BadInput, "options.tool_choice %q: write auto, required, none or the name of one of the agent's tools", choice)
		}
	}
	return nil
}

func turnID(n messages.EventNumber) messages.TurnID {
	return messages.TurnID(fmt.Sprintf("t%d", n))
}

// configure records that the agent is created, and a definition that is new to it.
func (d *decision) configure() {
	if d.s.unborn() {
		d.emit(messages.AgentCreated{Agent: d.env.Agent.Full(), Parent: d.parent})
	}
	if def := d.env.Definition; !def.Unknown && d.s.Life.Definition != def.Digest {
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
	def := d.env.Definition
	max, limits, choice := q.Options.MaxSteps, def.TurnLimits, q.Options.ToolChoice
	if max == 0 {
		max = def.MaxSteps
	}
	limits = tighter(limits, d.s.limitsOf(q.ID))
	limits.MaxSteps = 0
	if choice == "" {
		choice = def.ToolChoice
	}
	if choice == "auto" {
		choice = ""
	}
	d.emit(messages.TurnStarted{
		Turn: turnID(d.number()), Inputs: []string{q.ID}, Definition: d.s.Life.Definition,
		MaxSteps: max, Limits: limits, ToolChoice: choice,
	})
	d.startClock()
}

func (d *decision) output() (projections.Output, bool) { return d.s.Output(d.env.Definition) }

// Output is what the turn would answer now; false while it has no answer.
func (s *State) Output(def Definition) (projections.Output, bool) {
	t := s.Turn
	switch {
	case t.HookAnswer != nil:
		return projections.Output{Text: *t.HookAnswer}, true
	case t.Answer != nil:
		return *t.Answer, true
	}
	for _, c := range t.Calls {
		if c.Outcome == projections.CallCompleted && def.Tools[c.Tool].Stop {
			return projections.Output{Text: c.Output, Blob: c.Blob}, true
		}
	}
	return projections.Output{}, false
}

// requestModel intends the next step's model call, or the next attempt at the one that has no
// answer. Of the inputs that steer the turn it lets in those that hooks have seen, if any were
// asked.
func (d *decision) requestModel() {
	request, steered := "", d.s.Inputs.SteeredIDs()
	if d.asked.Point == BeforeModel {
		request, steered = d.asked.Request, d.asked.Seen
	}
	d.configure() // the definition may have changed since the turn began
	t, def := d.s.Turn, d.env.Definition
	step, attempt := t.Steps+1, 1
	if t.Model != nil {
		step, attempt = t.Steps, t.Model.Attempt+1
	}
	d.reserve(step)
	model, choice := d.s.Asks(def)
	ev := messages.ModelRequested{
		Turn: t.ID, Step: step, Attempt: attempt,
		Call:  messages.CallID(fmt.Sprintf("m%d", d.number())),
		Model: model, Definition: def.Digest, Instructions: def.Instructions,
		ToolChoice: choice, Inputs: t.Fresh,
	}
	for _, q := range d.s.Inputs.Steered {
		if slices.Contains(steered, q.ID) {
			ev.Inputs = append(ev.Inputs[:len(ev.Inputs):len(ev.Inputs)], q.ID)
		}
	}
	if len(ev.Inputs) > len(t.Fresh) { // they come into the history with this very event
		d.emit(ev)
		ev.Request = cmp.Or(request, d.digest(choice))
		d.events[len(d.events)-1] = ev
		return
	}
	ev.Request = cmp.Or(request, d.digest(choice))
	d.emit(ev)
}

// digest is the hash of a request that no hook has changed.
func (d *decision) digest(choice string) string {
	def := d.env.Definition
	if choice == "" {
		return string(d.s.History.Digest(def.Digest, def.Instructions))
	}
	return string(d.s.History.Digest(def.Digest, def.Instructions, choice))
}

// model is the model to ask.
func (d *decision) model() string {
	model, _ := d.s.Asks(d.env.Definition)
	return model
}

// Asks is which model the turn's next call asks, as provider/model, and what it
// is made to do, as in model.requested.
func (s *State) Asks(def Definition) (model, toolChoice string) {
	t := s.Turn
	model = def.Model
	if t.Switched != "" && slices.Contains(def.Fallbacks, t.Switched) {
		model = t.Switched
	}
	switch choice := t.ToolChoice; choice {
	case "", "none":
		return model, choice
	case "required":
		if !t.ToolUsed && len(def.Tools) > 0 {
			return model, choice
		}
	default:
		if _, ok := def.Tools[choice]; ok && !t.ToolUsed {
			return model, choice
		}
	}
	return model, ""
}

// complete ends the turn with an answer.
func (d *decision) complete(output projections.Output) {
	d.requeue("its turn ended before a model had seen it")
	d.cancelTimers()
	t := d.s.Turn
	d.emit(messages.TurnCompleted{Turn: t.ID, Inputs: d.s.TurnInputs(), Output: output.Text, Blob: output.Blob, Finish: output.Finish, Steps: t.Steps, Usage: t.Total()})
}

// fail ends the turn without an answer. Calls that have no
// outcome get one, with why.
func (d *decision) fail(reason, message string) {
	d.failAs(messages.TurnFailed{Reason: reason, Message: message})
}

// failAs is fail with the reason and what goes with it.
func (d *decision) failAs(ev messages.TurnFailed) {
	d.withhold(&ev)
	d.settleCalls("the turn failed")
	d.requeue("its turn failed before a model had seen it")
	d.cancelTimers()
	t := d.s.Turn
	ev.Turn, ev.Inputs, ev.Steps, ev.Usage = t.ID, d.s.TurnInputs(), t.Steps, t.Total()
	d.emit(ev)
}

// requeue gives steered inputs that no model call has seen a turn of their own.
func (d *decision) requeue(reason string) {
	t := d.s.Turn
	for len(d.s.Inputs.Steered) > 0 {
		d.emit(messages.InputRequeued{Input: d.s.Inputs.Steered[0].ID, Turn: t.ID, Reason: reason})
	}
}

// pause makes the turn wait for a person. The clock of its duration stops.
func (d *decision) pause(st step) {
	d.dropSummary(d.s.Turn.ID, "the turn was paused")
	d.stopClock()
	d.emit(messages.TurnPaused{Turn: d.s.Turn.ID, Reason: st.reason, Calls: st.calls, Message: st.message})
}
