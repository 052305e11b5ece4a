package turn

import (
	"fmt"

	"github.com/reprise-dev/reprise/messages"
)

// Decide answers a command (a messages.Command) or an outcome with the events
// to append, and folds them into s: the caller must append them before it acts
// on s, and drop s if it cannot. No events means that nothing is to be
// recorded. An error is a refusal (*messages.Error or *ProcessedError) and leaves s
// as it was. A messages.Delete is decided twice: without env.Upto, for a frame that has no
// command as its cause, and then with it and its Last zero, for the tombstone.
func (s *State) Decide(env Env, cmd any) ([]messages.Event, error) {
	d := &decision{s: s, env: env}
	s.Work.Trace(env.Trace)
	defer s.Work.Trace("")
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
	// asked is what the hooks that the turn has waited for decided. An empty Point: none did.
	asked HooksAsked
	// why is the reason for the end of a pause that was for calls.
	why string
	// parent is the agent that a new agent works for. Empty: none.
	parent string
	// spelt are arguments in canonical form, by how they were written.
	spelt map[string]string
}

func (d *decision) emit(ev messages.Event) {
	if d.events == nil {
		d.events = make([]messages.Event, 0, 8) // what most decisions need
	}
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
	if err := d.refuseAbsent(c); err != nil {
		return err
	}
	switch c := c.(type) {
	case messages.Input:
		return d.input(c)
	case messages.Task:
		return d.task(c)
	case messages.CancelChild:
		return d.cancelTask(c)
	case messages.SetState:
		d.configure()
		d.emit(messages.StatePatched{Patch: c.Patch, Reason: c.Reason})
		return nil
	case messages.Interrupt:
		return d.stop(c, c.Turn, c.Reason, interruptNote(c.Reason))
	case messages.Abort:
		return d.stop(c, c.Turn, c.Reason, "")
	case messages.Clear:
		return d.clear(c)
	case messages.Cancel:
		return d.cancel(c)
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
	case messages.DecisionEffect:
		return d.decisionEffect(c)
	case messages.Delete:
		return d.delete(c)
	case messages.Fork:
		return d.fork(c)
	case messages.BeginFork:
		return d.beginFork(c)
	case messages.Import:
		return d.importAgent(c)
	case messages.ForkEffect:
		return d.forkEffect(c)
	case messages.UseTools:
		return d.useTools(c)
	case messages.Detach:
		return d.detach(c)
	}
	return messages.Refuse(messages.UnknownCommand, "command %q is unknown to this version", c.CommandType())
}

// refuseAbsent refuses what requires an agent that exists, if this one does not. An input creates
// it. A task creates one that was not deleted: it may be sent again long after its end.
func (d *decision) refuseAbsent(c messages.Command) error {
	del := d.s.Life.Deleted
	switch c.(type) {
	case messages.Input, messages.SetState:
		return nil
	case messages.Task, messages.CancelChild:
		if del == nil {
			return nil
		}
	}
	switch {
	case del != nil:
		return messages.Refuse(messages.NotFound, "agent %s was deleted (event %d): it exists again once you send it an input", d.env.Agent, del.N)
	case d.s.Last == 0:
		return messages.Refuse(messages.NotFound, "agent %s does not exist: nothing was ever sent to it", d.env.Agent)
	}
	return nil
}
