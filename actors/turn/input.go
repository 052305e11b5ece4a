package turn

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

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

// accept records an input that was not refused; parent is the call that it is the task of, nil if
// there is none.
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
		d.abort(in.CommandType(), "a new input interrupted it", interruptNote(""))
		if d.env.Next != nil { // the definition of the turn that begins
			d.env.Definition = *d.env.Next
		}
	}
	switch {
	case in.Policy == messages.PolicyInterrupt, t == nil && len(s.Inputs.Queued) == 0:
		d.configure()
		accepted.Disposition, accepted.Turn = messages.Started, messages.TurnAt(d.number()+1)
	case t != nil && in.Policy == messages.PolicySteer:
		accepted.Disposition, accepted.Turn = messages.Steered, t.ID
	}
	d.emit(accepted)
}

// maxEnds is how many bytes the ends of all inputs that an agent has may take, and endSize how
// many one takes without its id: a clear ends them in one frame.
const (
	maxEnds = 256 << 10
	endSize = 120
)

// Refuses returns why Decide would refuse an input now; nil if it would accept it.
func (s *State) Refuses(env Env, in messages.Input) error {
	d := &decision{s: s, env: env}
	if err := s.repeated(in.ID); err != nil {
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
	waiting, size := len(d.s.waiting()), endSize+len(in.ID)
	for _, id := range slices.Concat(d.s.Inputs.QueuedIDs(), d.s.TurnInputs()) {
		size += endSize + len(id)
	}
	switch {
	case def.Unknown():
		return d.unknown()
	case d.s.Inputs.Accepted(in.ID) != 0, t != nil && slices.Contains(t.Inputs, in.ID):
		return messages.Refuse(messages.Conflict, "an input with the id %q has not ended yet, and this one was not applied: if it is the same, wait for its end; another one needs another id", in.ID)
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

// refuseOptions refuses options that exceed the bounds of the definition.
func (d *decision) refuseOptions(o messages.InputOptions) error {
	def := d.env.Definition
	if o.MaxSteps > def.MaxSteps {
		return messages.Refuse(messages.BadInput, "options.max_steps is %d: the agent's own limit is %d, and an input may only ask for less", o.MaxSteps, def.MaxSteps)
	}
	if def.ToolChoice != "" && o.ToolChoice != "" && o.ToolChoice != def.ToolChoice {
		return messages.Refuse(messages.BadInput, "options.tool_choice %q: the agent's definition has %s, which an input cannot change", o.ToolChoice, def.ToolChoice)
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
