package turn

import (
	"cmp"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// An agent as a tool. A call of such a tool is started like any other, but runs in an agent of its
// own: tool.started and child.spawned are in one frame, the task is a message of the outbox, and
// the outcome is reported by a command.

// childCall returns the running call of a child; nil if there is none.
func (s *State) childCall(turn messages.TurnID, call messages.CallID) *projections.CallState {
	if c := s.call(turn, call); c != nil && c.Child != nil && c.Outcome == projections.CallRunning {
		return c
	}
	return nil
}

// spawn records the start of a call that is the task of an agent, unless it exceeds the bounds of
// depth, number and budget.
func (d *decision) spawn(c *projections.CallState, tool Tool, ev messages.ToolStarted) {
	limits, why := d.share(tool)
	if why != "" {
		d.failCall(c, messages.ToolFailureLimit, "not asked: "+why)
		return
	}
	d.emit(ev)
	caller := messages.Caller{Agent: d.env.Agent.Full(), Turn: c.Turn, Call: c.ID}
	d.emit(messages.ChildSpawned{
		Turn: c.Turn, Call: c.ID, Tool: c.Tool, Child: messages.ChildOf(d.env.Agent, tool.Child, c.Turn, c.ID).Full(),
		Input: messages.TaskID(caller), Limits: limits, Detached: tool.Detached,
	})
}

// share returns what the next child may use: what is left to the turn and to the agent, in equal
// parts for all children that are about to begin. Time is not divided: they run side by side. A
// reason is returned if the turn may ask no other agent.
func (d *decision) share(tool Tool) (share messages.Limits, why string) {
	t := d.s.Turn
	switch {
	case len(t.Callers) >= messages.MaxCallers:
		return share, "there are as many agents above this one as may be: do it without asking another"
	case t.Children >= cmp.Or(tool.MaxChildren, messages.MaxChildren):
		return share, "this turn has asked as many agents as it may: continue without"
	}
	among, out := 0, projections.Use{}
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Outcome == projections.CallRequested && d.env.Definition.Tools[c.Tool].Child != "" {
			among++
		}
		if c.Outcome == projections.CallRunning && c.Child != nil {
			out = out.Add(projections.Use{Tokens: c.Child.Limits.MaxTokens, Cost: c.Child.Limits.MaxCost})
		}
	}
	among = max(among, 1)
	ran := int64(0)
	if tm := d.s.Timers.OfTurn(projections.DurationTimer); tm != nil {
		ran = d.ran(tm)
	}
	turn, agent := d.budgets()
	for _, b := range [...]budget{turn, agent} {
		m, used, left := b.limits, b.used.Add(out), messages.Limits{}
		if m.MaxTokens != 0 {
			if left.MaxTokens = (m.MaxTokens - used.Tokens) / among; left.MaxTokens <= 0 {
				return share, "nothing is left of the budget of tokens (max_tokens)"
			}
		}
		if m.MaxCost != 0 {
			if left.MaxCost = (m.MaxCost - used.Cost) / messages.Cost(among); left.MaxCost <= 0 {
				return share, "nothing is left of the budget of money (max_cost)"
			}
		}
		if m.MaxDuration != 0 {
			left.MaxDuration = max(m.MaxDuration-used.Duration-ran, 1)
		}
		share = tighter(share, left)
	}
	return share, ""
}

// tighter returns the lower of each limit.
func tighter(a, b messages.Limits) messages.Limits {
	return messages.Limits{
		MaxSteps:  lower(a.MaxSteps, b.MaxSteps),
		MaxTokens: lower(a.MaxTokens, b.MaxTokens), MaxCost: lower(a.MaxCost, b.MaxCost), MaxDuration: lower(a.MaxDuration, b.MaxDuration),
	}
}

func lower[N int | int64 | messages.Cost](a, b N) N {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Awaits reports whether a report is of a child that a call waits for, and newer than what
// is known.
func (s *State) Awaits(r messages.Report) bool {
	c := s.childCall(r.Turn, r.Call)
	return c != nil && c.Child.Agent == r.Child && !c.Child.Detached && r.N > c.Child.N
}

// report records what a child reports.
func (d *decision) report(c messages.Report) error {
	if m := d.s.Outbox.Cancels(c.Turn, c.Call); m != nil && m.To == c.Child {
		if !c.What.Ends() {
			return d.noop(c, "call %q of turn %s is not awaited any more", c.Call, c.Turn)
		}
		d.emit(messages.ChildStopped{Turn: c.Turn, Call: c.Call, Child: c.Child, N: c.N, How: c.What, Used: c.Used})
		return nil
	}
	call := d.s.childCall(c.Turn, c.Call)
	switch {
	case call == nil || call.Child.Agent != c.Child || call.Child.Detached:
		return d.noop(c, "call %q of turn %s is not awaited", c.Call, c.Turn)
	case c.N <= call.Child.N && c.What != messages.ReportRefused:
		return d.noop(c, "something newer is known of child %s", c.Child)
	case d.env.Definition.Unknown():
		return d.unknown()
	}
	switch c.What {
	case messages.ReportWaiting:
		d.emit(messages.ChildWaiting{Turn: c.Turn, Call: c.Call, Child: c.Child, N: c.N, Waiting: c.Waiting, More: c.More, Busy: c.Busy})
		d.why = "a child continues"
	case messages.ReportGoing:
		d.emit(messages.ChildResumed{Turn: c.Turn, Call: c.Call, Child: c.Child, N: c.N})
		d.why = "a child continues"
	case messages.ReportCompleted:
		d.emit(messages.ChildCompleted{Turn: c.Turn, Call: c.Call, Child: c.Child, N: c.N, Used: c.Used})
		d.emit(messages.ToolCompleted{Turn: c.Turn, Call: c.Call, Output: c.Output, Blob: c.Blob})
		d.why = "a child has ended"
	default:
		reason := cmp.Or(c.Reason, string(c.What))
		d.emit(messages.ChildFailed{Turn: c.Turn, Call: c.Call, Child: c.Child, N: c.N, Reason: reason, Message: c.Message, Used: c.Used})
		message := "agent " + c.Child + " gave no answer (" + reason + ")"
		if c.Message != "" {
			message += ": " + c.Message
		}
		d.failCall(call, messages.ToolFailureChild, message)
		d.why = "a child has ended"
	}
	return nil
}

// forward forwards a decision to the call below that waits for one of that kind. It reports
// whether there is one, or the decision is refused.
func (d *decision) forward(c messages.Command, kind messages.WaitKind, ev messages.ChildDecided) (done bool, err error) {
	if d.s.Turn == nil {
		return false, nil
	}
	if own := d.s.call(ev.Of, ev.Waits); own != nil && (own.Outcome == projections.CallWaiting || own.Outcome == projections.CallUnknown) {
		return false, nil
	}
	found, others := waitingBelow(d.s.Turn, kind, ev)
	switch {
	case len(found) > 1:
		return true, messages.Refuse(messages.Conflict, "call %q waits in %s and in %s: give the decision to one of them", ev.Waits, found[0].Agent, found[1].Agent)
	case len(found) == 0 && others:
		return true, otherArguments(ev.Waits)
	case len(found) == 0:
		return false, nil
	}
	ev = found[0]
	ev.Command, ev.ID, ev.Person = c.CommandType(), messages.Derived("for:", d.env.Agent.Full(), messages.IDOf(c)), d.env.Person
	if slices.ContainsFunc(d.s.Outbox.Messages, func(m projections.OutboxMessage) bool { return m.Decision != nil && sameDecision(*m.Decision, ev) }) {
		return true, d.noop(c, "the same was decided about call %q before, and is on its way to %s", ev.Waits, ev.Agent)
	}
	d.emit(ev)
	return true, nil
}

// waitingBelow returns a decision for each call below the turn that waits for one of that kind,
// with the turn, id and arguments that ev names, and reports whether others wait with other
// arguments. An empty turn or hash fits all.
func waitingBelow(t *projections.TurnState, kind messages.WaitKind, ev messages.ChildDecided) (found []messages.ChildDecided, others bool) {
	for i := range t.Calls {
		c := &t.Calls[i]
		if !c.ListsBelow() {
			continue
		}
		for _, w := range c.Child.Waiting {
			switch {
			case w.Call != ev.Waits || w.Kind != kind || ev.Of != "" && w.Turn != ev.Of:
			case ev.ArgsHash != "" && ev.ArgsHash != w.ArgsHash:
				others = true
			default:
				f := ev
				f.Turn, f.Call, f.Agent, f.Of, f.ArgsHash = t.ID, c.ID, w.Agent, w.Turn, w.ArgsHash
				found = append(found, f)
			}
		}
	}
	return found, others
}

// sameDecision reports whether two decisions are one but for their ids, reasons and persons.
func sameDecision(a, b messages.ChildDecided) bool {
	text := func(ev messages.ChildDecided) string {
		if ev.Text == nil {
			return messages.DeniedText
		}
		return *ev.Text
	}
	if text(a) != text(b) {
		return false
	}
	a.ID, a.Reason, a.Text, a.Person = b.ID, b.Reason, b.Text, b.Person
	return a == b
}

// decisionEffect records the effect of a decision that was forwarded.
func (d *decision) decisionEffect(c messages.DecisionEffect) error {
	m := d.s.Outbox.Message(c.Decision)
	if m == nil || m.Decision == nil {
		return d.noop(c, "the effect of decision %q is not awaited any more", c.Decision)
	}
	ev := m.Decision
	d.emit(messages.ChildSettled{
		Turn: ev.Turn, Call: ev.Call, Agent: ev.Agent, Of: ev.Of, Waits: ev.Waits, Command: ev.Command, ID: ev.ID,
		N: c.N, Refused: c.Refused, Message: c.Message,
	})
	return nil
}

// stopChild cancels the child of a call, if the call waits for it.
func (d *decision) stopChild(c *projections.CallState, why string) {
	if c.Child != nil && !c.Child.Detached {
		d.emit(messages.ChildAborted{Turn: d.s.Turn.ID, Call: c.ID, Child: c.Child.Agent, Input: c.Child.Input, Reason: why})
	}
}
