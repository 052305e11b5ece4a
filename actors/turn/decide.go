package turn

import (
	"fmt"

	"github.com/reprise-dev/reprise/messages"
)

// SpentError says that a command's id was applied before, at event N: it has
// no second effect, and its first answer stands.
type SpentError struct {
	ID string
	N  messages.EventNumber
}

// Error says so.
func (e *SpentError) Error() string {
	return fmt.Sprintf("id %q was applied before, at event %d", e.ID, e.N)
}

// Decide answers a command (a messages.Command) or an outcome with the events
// to append, and folds them into s: the caller must append them before it acts
// on s, and drop s if it cannot. No events means that nothing changes. An
// error is a refusal (*messages.Error or *SpentError) and leaves s as it was.
func (s *State) Decide(env Env, cmd any) ([]messages.Event, error) {
	d := &decision{s: s, env: env}
	if c, ok := cmd.(messages.Command); ok {
		if n, spent := s.Spent(c.CommandID()); spent {
			return nil, &SpentError{c.CommandID(), n}
		}
		if err := d.command(c); err != nil {
			return nil, err
		}
		return d.events, nil
	}
	d.outcome(cmd)
	return d.events, nil
}

// decision gathers the events of one Decide, folding each as it is made.
type decision struct {
	s      *State
	env    Env
	events []messages.Event
}

func (d *decision) emit(ev messages.Event) {
	d.events = append(d.events, ev)
	d.s.evolve(ev)
}

// next is the number that the next event will have.
func (d *decision) next() messages.EventNumber { return d.s.Last + 1 }

func (d *decision) command(c messages.Command) error {
	if in, ok := c.(messages.Input); ok {
		return d.input(in)
	}
	if set, ok := c.(messages.SetState); ok {
		d.configure()
		d.emit(messages.StatePatched{Patch: set.Patch, Reason: set.Reason})
		return nil
	}
	if d.s.Last == 0 {
		return messages.Refuse(messages.NotFound, "agent %s does not exist yet: send it an input first", d.env.Agent)
	}
	switch c := c.(type) {
	case messages.Interrupt:
		d.stop("interrupt", c.Turn, c.Reason)
	case messages.Abort:
		d.stop("abort", c.Turn, c.Reason)
	case messages.Resume:
		return d.resume(c)
	case messages.Decide:
		return d.decide(c)
	default:
		return messages.Refuse(messages.UnknownCommand, "command %q is unknown to this version", c.CommandType())
	}
	return nil
}

func (d *decision) input(in messages.Input) error {
	s, def := d.s, d.env.Definition
	busy := s.Turn != nil
	switch {
	case in.Deadline != nil && !d.env.Now.Before(*in.Deadline):
		return messages.Refuse(messages.Expired, "the deadline %s had passed when the input arrived", in.Deadline.UTC().Format("2006-01-02T15:04:05.000Z"))
	case busy && in.Policy == messages.PolicyReject:
		return messages.Refuse(messages.Busy, "agent %s is busy with turn %s and the input's policy is reject", d.env.Agent, s.Turn.ID)
	case len(s.Queue) >= def.MaxQueue:
		return messages.Refuse(messages.QueueFull, "agent %s has %d inputs waiting, its limit (max_queue): try again later", d.env.Agent, len(s.Queue))
	}
	if !busy {
		d.configure()
	}
	accepted := messages.InputAccepted{
		Input: in.ID, Disposition: messages.Queued, Policy: in.Policy, Content: in.Content,
		Metadata: in.Metadata, Deadline: in.Deadline, Reply: in.Reply, Options: in.Options,
	}
	if !busy {
		accepted.Disposition, accepted.Turn = messages.Started, turnID(d.next()+1)
	}
	d.emit(accepted)
	d.startNext()
	return nil
}

func turnID(n messages.EventNumber) messages.TurnID {
	return messages.TurnID(fmt.Sprintf("t%d", n))
}

// configure tells of the agent's birth and of a definition it has not met.
func (d *decision) configure() {
	if d.s.Last == 0 {
		d.emit(messages.AgentCreated{Agent: d.env.Agent.Full()})
	}
	if def := d.env.Definition; d.s.Definition != def.Digest {
		d.emit(messages.AgentConfigured{Definition: def.Digest, Model: def.Model})
	}
}

// startNext begins the turn of the oldest waiting input, if none runs.
func (d *decision) startNext() {
	s := d.s
	if s.Turn != nil || len(s.Queue) == 0 {
		return
	}
	q := s.Queue[0]
	if s.Definition != d.env.Definition.Digest {
		d.configure()
	}
	max := q.Options.MaxSteps
	if max == 0 {
		max = d.env.Definition.MaxSteps
	}
	d.emit(messages.TurnStarted{Turn: turnID(d.next()), Inputs: []string{q.ID}, Definition: s.Definition, MaxSteps: max})
	d.request([]string{q.ID})
}

// request asks the model for the next step, or fails the turn at its limit.
func (d *decision) request(admits []string) {
	t := d.s.Turn
	if t.Steps >= t.MaxSteps {
		d.fail("max_steps", fmt.Sprintf("the turn made %d model calls, its limit (max_steps); resume it with a higher one to go on", t.Steps))
		return
	}
	d.requestStep(t.Steps+1, 1, admits)
}

func (d *decision) requestStep(step, attempt int, admits []string) {
	d.configure() // the definition may have changed since the turn began
	def := d.env.Definition
	d.emit(messages.ModelRequested{
		Turn: d.s.Turn.ID, Step: step, Attempt: attempt,
		Call:  messages.CallID(fmt.Sprintf("m%d", d.next())),
		Model: def.Model, Definition: def.Digest, Instructions: def.Instructions,
		Request: string(d.s.History.Digest(def.Digest, def.Instructions)),
		Inputs:  admits,
	})
}

// fail ends the turn without an answer and begins the next.
func (d *decision) fail(reason, message string) {
	t := d.s.Turn
	d.emit(messages.TurnFailed{Turn: t.ID, Inputs: t.Inputs, Reason: reason, Message: message, Steps: t.Steps, Usage: t.Usage})
	d.startNext()
}

// stop ends the running turn because somebody asked for it.
func (d *decision) stop(by string, only messages.TurnID, reason string) {
	t := d.s.Turn
	if t == nil {
		d.emit(messages.CommandNoop{Command: by, Reason: "no turn is running: there is nothing to " + by})
		return
	}
	if only != "" && only != t.ID {
		d.emit(messages.CommandNoop{Command: by, Reason: fmt.Sprintf("turn %s is not running: there is nothing to %s", only, by)})
		return
	}
	for _, c := range t.Calls {
		switch c.Status {
		case Requested:
			d.emit(messages.ToolSkipped{Turn: t.ID, Call: c.ID, Reason: "not run: the turn was stopped before its start"})
		case Executing:
			d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "interrupted", Message: "stopped while it ran: it may or may not have had its effect"})
		case Unknown:
			d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "unknown", Message: "its outcome was never learned: it may or may not have had its effect"})
		}
	}
	note := ""
	if by == "interrupt" {
		note = "The user interrupted the turn above before it was finished."
		if reason != "" {
			note += " Reason: " + reason
		}
	}
	d.emit(messages.TurnAborted{Turn: t.ID, Inputs: t.Inputs, By: by, Reason: reason, Note: note, Steps: t.Steps, Usage: t.Usage})
	d.startNext()
}

func (d *decision) resume(c messages.Resume) error {
	s := d.s
	noop := func(reason string) error {
		d.emit(messages.CommandNoop{Command: "resume", Reason: reason})
		return nil
	}
	if t := s.Turn; t != nil {
		switch {
		case c.Turn != "" && c.Turn != t.ID:
			return messages.Refuse(messages.Conflict, "turn %s is not the newest: turn %s is", c.Turn, t.ID)
		case t.Paused:
			return noop(fmt.Sprintf("turn %s waits for a decision about call %v: decide it", t.ID, t.waiting()))
		}
		return noop(fmt.Sprintf("turn %s is running", t.ID))
	}
	e := s.Ended
	switch {
	case e == nil:
		return noop("no turn has run yet")
	case c.Turn != "" && c.Turn != e.ID:
		return messages.Refuse(messages.Conflict, "turn %s is not the newest: turn %s is", c.Turn, e.ID)
	case !e.Failed:
		return noop(fmt.Sprintf("turn %s is finished", e.ID))
	}
	max := e.MaxSteps
	if c.MaxSteps != 0 {
		max = c.MaxSteps
	}
	if max <= e.resumeSteps() {
		return messages.Refuse(messages.Conflict, "turn %s has made %d model calls: resume it with max_steps above that", e.ID, e.Steps)
	}
	d.configure()
	continued := messages.TurnStarted{Definition: s.Definition, MaxSteps: max, Continues: e.ID, Steps: e.resumeSteps(), Reason: c.Reason}
	continued.Turn = turnID(d.next())
	d.emit(continued)
	d.request(nil)
	return nil
}

// resumeSteps is how many of the ended turn's steps count for the one that
// continues it: a step whose model call failed is made again.
func (e *Ended) resumeSteps() int {
	if e.Reason == "max_steps" {
		return e.Steps
	}
	return max(e.Steps-1, 0)
}

// decide settles a call whose outcome is unknown.
func (d *decision) decide(c messages.Decide) error {
	t := d.s.Turn
	var call *ToolCall
	if t != nil {
		call = t.call(c.Call)
	}
	switch {
	case call == nil:
		return messages.Refuse(messages.NotFound, "no call %q is waiting for a decision", c.Call)
	case call.Status != Unknown:
		return messages.Refuse(messages.Conflict, "call %q is not waiting for a decision", c.Call)
	case c.Outcome != messages.OutcomeCompleted && c.Outcome != messages.OutcomeFailed && c.Outcome != messages.OutcomeRetry:
		return messages.Refuse(messages.BadInput, "outcome %q: write completed, failed or retry", c.Outcome)
	case c.Outcome == messages.OutcomeRetry && t.count(Executing) >= d.env.Definition.Parallel:
		return messages.Refuse(messages.Busy, "call %q cannot run again yet: as many tools run as may at once; try again when one has ended", c.Call)
	}
	if t.Paused {
		d.emit(messages.TurnResumed{Turn: t.ID, Reason: c.Reason})
	}
	switch c.Outcome {
	case messages.OutcomeCompleted:
		d.emit(messages.ToolCompleted{Turn: t.ID, Call: c.Call, Output: c.Result, By: "decision"})
	case messages.OutcomeFailed:
		message := c.Result
		if message == "" {
			message = "it failed"
		}
		d.emit(messages.ToolFailed{Turn: t.ID, Call: c.Call, Kind: "error", Message: message, By: "decision"})
	case messages.OutcomeRetry:
		d.startTool(call, "decision")
	}
	d.advance()
	return nil
}
