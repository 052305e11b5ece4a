package turn

import (
	"errors"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// A fork begins with the state of its parent as of an event: the caller loads that from the parent's
// log and decides a messages.BeginFork on it. What the parent does or owes is not the fork's: it
// answers no caller of the parent's, sends none of its messages, and fires none of its timers. What
// ran is unknown, and the turn waits for a person.

// ForkedFrame is a frame of a parent by its digest and its first and last event.
type ForkedFrame struct {
	Digest      messages.Digest
	First, Last messages.EventNumber
	Time        time.Time
}

// fork records that a fork of the agent is to begin.
func (d *decision) fork(c messages.Fork) error {
	fork, err := messages.ParseAgentID(c.Fork)
	at := c.At
	if at == 0 {
		at = d.s.Last
	}
	switch {
	case err != nil:
		return err
	case fork == d.env.Agent:
		return messages.Refuse(messages.BadInput, "agent %s cannot be a fork of itself: name another agent", fork)
	case fork.Tenant != d.env.Agent.Tenant:
		return messages.Refuse(messages.BadInput, "agent %s is of another tenant than %s: a fork has the tenant of its parent", fork, d.env.Agent)
	case at > d.s.Last:
		return messages.Refuse(messages.NotFound, "agent %s has %d events: there is no event %d to fork it at", d.env.Agent, d.s.Last, at)
	case d.s.Forks.Borrows(at): // its fork would depend on an agent that does not have it on record
		return RefuseBorrowed(d.env.Agent, d.s.Forks.Origin.Parent, at)
	case d.s.Forks.Depth() >= messages.MaxPrefixes:
		return messages.Refuse(messages.Conflict, "agent %s is a fork of a fork, %d times: fork one of the agents that it comes from", d.env.Agent, d.s.Forks.Depth())
	case d.s.Forks.Of(fork) != nil:
		return messages.Refuse(messages.Conflict, "agent %s was forked as %s before: choose another name", d.env.Agent, fork)
	}
	begin := messages.Derived("fork:", d.env.Agent.Full(), c.ID)
	d.emit(messages.ForkRequested{Fork: fork.Full(), At: at, Begin: begin, Set: d.s.Forks.Set().Override(c.Set), Reason: c.Reason})
	return nil
}

// RefuseBorrowed refuses a fork at an event that a fork has of its parent: it is forked there.
func RefuseBorrowed(self, parent messages.AgentID, at messages.EventNumber) error {
	return messages.Refuse(messages.Conflict, "event %d of agent %s is an event of %s, which it is a fork of: fork %s at %d", at, self, parent, parent, at)
}

// forkEffect records what became of a fork.
func (d *decision) forkEffect(c messages.ForkEffect) error {
	m := d.s.Outbox.Message(c.Begin)
	if m == nil && d.begunLate(c) {
		return nil
	}
	if m == nil || m.Kind != projections.BeginFork {
		return d.noop(c, "the effect of %q is not awaited any more", c.Begin)
	}
	d.emit(messages.ForkSettled{Fork: m.To, Begin: c.Begin, N: c.N, Refused: c.Refused, Message: c.Message})
	return nil
}

// begunLate records a fork that has begun after it was refused, for its command was given again. It
// reports whether it did: without that the agent could be deleted while the fork needs its events.
func (d *decision) begunLate(c messages.ForkEffect) bool {
	fork, err := messages.ParseAgentID(c.Fork)
	if err != nil || c.N <= 1 || c.N > d.s.Last+1 || d.s.Forks.Of(fork) != nil {
		return false
	}
	d.emit(messages.ForkSettled{Fork: c.Fork, Begin: c.Begin, N: c.N})
	return true
}

// RefuseFork returns why an agent with events cannot begin as a fork: the id was processed before, or
// the agent exists. Nil: it has no events.
func (s *State) RefuseFork(self messages.AgentID, c messages.BeginFork) error {
	err := s.RefuseImport(self, c.ID)
	if processed := (*ProcessedError)(nil); err == nil || errors.As(err, &processed) {
		return err
	}
	if o := s.Forks.Origin; o != nil && !o.Imported && o.Parent.Full() == c.Parent && o.At == c.At { // its id has left the window
		return &ProcessedError{ID: c.ID, N: c.At + 1}
	}
	return err
}

// RefuseImport returns why an agent cannot begin with events from elsewhere by the command with this
// id: it was processed before, or the agent has events. Nil: it has none.
func (s *State) RefuseImport(self messages.AgentID, id string) error {
	if err := s.repeated(id); err != nil {
		return err
	}
	switch {
	case s.Life.Deleted != nil:
		return messages.Refuse(messages.Conflict, "agent %s was deleted, and the numbers of its events are used: choose a name that no agent had", self)
	case s.Last != 0:
		return messages.Refuse(messages.Conflict, "agent %s exists, with %d events: choose another name", self, s.Last)
	}
	return nil
}

// beginFork turns the state of the parent into that of a fork.
func (d *decision) beginFork(c messages.BeginFork) error {
	t, in := d.s.Turn, d.env.Forked
	switch {
	case d.s.Last != c.At:
		return messages.Refuse(messages.Internal, "the state is as of event %d, the fork begins behind event %d", d.s.Last, c.At)
	case t != nil && c.At < in.Last: // half of a step of the turn has no meaning
		before := max(in.First, t.Started) - 1
		return messages.Refuse(messages.Conflict, "events %d to %d of turn %s of agent %s were recorded in one step: fork it at %d, before them, or at %d, behind them", before+1, in.Last, t.ID, c.Parent, before, in.Last)
	}
	ev := messages.AgentForked{Agent: d.env.Agent.Full(), Parent: c.Parent, At: c.At, Digest: in.Digest, Set: c.Set, Reason: c.Reason}
	if t != nil {
		ev.Turn = t.ID
	}
	d.emit(ev)
	d.leave(leaving{by: c.CommandType(), of: c.Parent, why: "the fork begins without it: it is for " + c.Parent, when: "when the fork was made",
		pause: projections.PausedFork, message: "the fork begins inside of a turn; resume the turn to continue it"})
	return nil
}

// importAgent turns the state of the exported agent into that of the imported one.
func (d *decision) importAgent(c messages.Import) error {
	if d.s.Last != c.Last {
		return messages.Refuse(messages.Internal, "the state is as of event %d, the imported agent begins behind event %d", d.s.Last, c.Last)
	}
	ev := messages.AgentImported{
		Agent: d.env.Agent.Full(), Source: c.Source, Frames: &c.Frames, Last: c.Last, Digest: c.Digest, File: c.File,
		Redacted: c.Redacted, Dry: c.Dry, Set: d.s.Forks.Set().Override(c.Set), Reason: c.Reason,
	}
	if t := d.s.Turn; t != nil {
		ev.Turn = t.ID
	}
	d.emit(ev)
	d.leave(leaving{by: c.CommandType(), of: c.Source, why: "it was left where the agent was exported", when: "when that was exported",
		pause: projections.PausedImport, message: "the agent was exported inside of a turn; resume the turn to continue it"})
	return nil
}

// leaving is how the work of another agent is left to it.
type leaving struct {
	by             string // the command
	of             string // the other agent
	why            string // for what waits
	when           string // it was left
	pause, message string // of the turn
}

// leave ends what the other agent was doing: an agent that begins with its events does none of it.
func (d *decision) leave(l leaving) {
	d.leaveInputs(l.by, l.why)
	d.dropSummary("", "it was made for "+l.of)
	for len(d.s.Timers.Scheduled) > 0 {
		d.emit(messages.TimerCancelled{Timer: d.s.Timers.Scheduled[0].Timer, By: l.by, Reason: l.why})
	}
	if d.s.Turn != nil {
		d.leaveTurn(l)
	}
}

// leaveInputs drops the inputs that no model has seen.
func (d *decision) leaveInputs(by, why string) {
	waiting := d.s.waiting()
	why = shortened(why, len(waiting))
	for _, id := range waiting {
		d.emit(messages.InputDropped{Input: id, By: by, Reason: why})
	}
}

// leaveTurn sets an outcome for what ran in the other agent's turn, and pauses the turn.
func (d *decision) leaveTurn(l leaving) {
	t, now := d.s.Turn, d.env.Now
	d.env.Now = d.env.Forked.Time // since then the turn has run in the other agent alone
	d.cancelTimers()
	d.env.Now = now
	if m := t.Model; m != nil && m.UnderWay() {
		d.emit(messages.ModelRestarted{Turn: t.ID, Step: t.Steps, Call: m.ID, Reason: "it was a call of " + l.of})
		d.settleLost(m)
	}
	for i := range t.Calls {
		switch c := &t.Calls[i]; c.Outcome {
		case projections.CallRunning:
			d.unknownOutcome(c, "it ran in agent "+l.of+" "+l.when)
		case projections.CallWaiting: // on record here, too, for lists of all agents; without an expiry
			d.emit(messages.ApprovalRequested{Turn: t.ID, Call: c.ID, Tool: c.Tool, Arguments: c.Arguments, ArgsHash: c.ArgsHash, Reason: c.Reason})
		}
	}
	if t.Paused() == "" {
		d.pause(l.pause, l.message)
	}
}

// useTools lets a fork run its tools.
func (d *decision) useTools(c messages.UseTools) error {
	switch {
	case d.s.Forks.Origin == nil:
		return d.noop(c, "the agent is not a fork and runs its tools already")
	case !d.s.Forks.Dry():
		return d.noop(c, "its tools are used already")
	}
	d.emit(messages.ToolsEnabled{Reason: c.Reason})
	return nil
}

// detach records the copy that a fork has made of its parent's events.
func (d *decision) detach(c messages.Detach) error {
	switch o := d.s.Forks.Origin; {
	case o == nil:
		return d.noop(c, "the agent is no fork: all its events are its own")
	case o.Owned():
		return d.noop(c, "it has the events up to %d itself already", o.At)
	case d.env.Copied == nil:
		return messages.Refuse(messages.Internal, "the events up to %d were not copied", o.At)
	}
	copied := *d.env.Copied
	d.emit(messages.ForkDetached{Frames: &copied.Frames, Last: copied.Last, Digest: copied.Digest, Reason: c.Reason})
	return nil
}
