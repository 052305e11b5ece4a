package turn

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// The child's side of an agent that is a tool. The parent's is in children.go, the messages between
// them in outbox.go.

// task accepts another agent's call as an input.
func (d *decision) task(c messages.Task) error {
	if task := d.s.Outbox.Task(c.ID); task != nil {
		if task.N == 0 {
			return d.noop(c, "it was cancelled before it came")
		}
		return &ProcessedError{ID: c.ID, N: task.N}
	}
	if d.env.Definition.Unknown() {
		return d.unknown()
	}
	in := messages.Input{ID: c.ID, Content: c.Content}
	if err := d.refuseInput(in); err != nil {
		return err
	}
	d.accept(in, &c.Parent)
	return nil
}

// cancelTask cancels a task.
func (d *decision) cancelTask(c messages.CancelChild) error {
	task := d.s.Outbox.Task(c.Input)
	_, other := d.s.Processed(c.Input) // an id that is no task's
	switch {
	case task != nil && task.End != nil, task == nil && other:
		return d.noop(c, "the task has ended")
	case task == nil:
		d.parent = c.Parent.Agent
		d.configure()
		d.emit(messages.InputRecalled{Input: c.Input, Parent: c.Parent, Reason: c.Reason})
	case slices.Contains(d.s.TurnInputs(), c.Input):
		d.abort(c.CommandType(), c.Reason, "")
	default:
		d.emit(messages.InputCancelled{Input: c.Input, Reason: c.Reason})
	}
	return nil
}

// limitsOf returns the limits that a parent has set for the turn of an input.
func (s *State) limitsOf(input string) messages.Limits {
	if task := s.Outbox.Task(input); task != nil {
		return task.Parent.Limits
	}
	return messages.Limits{}
}
