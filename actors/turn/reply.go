package turn

import "github.com/reprise-dev/reprise/messages"

// Reply returns the message to the agent that has sent a command to agent of, if the log does not
// imply it: that a Task or CancelChild is refused, and the outcome of a decision. ok reports
// whether there is one. There is none yet if the refusal is temporary: the command is sent again.
func Reply(of messages.AgentID, c messages.Command, answer messages.Answer) (m Message, ok bool) {
	if answer.Err != nil && answer.Err.Code == messages.Unavailable {
		return Message{}, false
	}
	switch c := c.(type) {
	case messages.Task:
		return refusedTask(of, c, c.Parent, answer.Err)
	case messages.CancelChild:
		return refusedTask(of, c, c.Parent, answer.Err)
	case messages.BeginFork:
		return forkEffect(of, c, answer)
	}
	return decisionEffect(c, answer)
}

// refusedTask returns the report about a refused Task or CancelChild, unless the call is detached.
func refusedTask(child messages.AgentID, c messages.Command, p messages.Parent, why *messages.Error) (m Message, ok bool) {
	to, err := messages.ParseAgentID(p.Agent)
	if err != nil || p.Detached || why == nil {
		return Message{}, false
	}
	return Message{To: to, Command: messages.Report{
		ID: messages.Derived("report:", child.Full(), messages.IDOf(c), "refused"), Turn: p.Turn, Call: p.Call, Child: child.Full(),
		What: messages.ReportRefused, Reason: string(why.Code), Message: why.Message,
	}}, true
}

// decisionEffect returns the outcome of a forwarded decision. There is none yet if the call cannot
// run again at the moment: the decision is sent again.
func decisionEffect(c messages.Command, answer messages.Answer) (m Message, ok bool) {
	to, err := messages.ParseAgentID(messages.ForwardedBy(c).For)
	r := messages.DecisionEffect{Decision: messages.IDOf(c), N: answer.N, Message: answer.Noop}
	if why := answer.Err; why != nil {
		r.N, r.Refused, r.Message = 0, why.Code, why.Message
	}
	if err != nil || r.Refused == messages.Busy {
		return Message{}, false
	}
	r.ID = messages.Derived("report:", "decision", r.Decision, string(r.Refused))
	return Message{To: to, Command: r}, true
}

// forkEffect returns what became of a BeginFork, for the parent.
func forkEffect(of messages.AgentID, c messages.BeginFork, answer messages.Answer) (m Message, ok bool) {
	to, err := messages.ParseAgentID(c.Parent)
	r := messages.ForkEffect{Fork: of.Full(), Begin: c.ID, N: answer.N}
	if why := answer.Err; why != nil {
		r.N, r.Refused, r.Message = 0, why.Code, why.Message
	}
	r.ID = messages.Derived("report:", "fork", r.Begin, string(r.Refused))
	return Message{To: to, Command: r}, err == nil
}
