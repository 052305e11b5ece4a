package turn

import (
	"encoding/json"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Message is a command for another agent.
type Message struct {
	To      messages.AgentID
	Command messages.Command
	// Trace is the trace context of the call that the command is the task of, or of the command that
	// asked for a fork. Empty: there is none.
	Trace messages.TraceContext
	// Resend reports that the message is sent again, now and then, for as long as its effect
	// is listed. Else its effect ends with [MessageStored].
	Resend bool
}

// MessageStored reports that a message is stored for its agent.
type MessageStored struct{ ID string }

// sends returns the effects that send messages to other agents: all, or those of some kinds.
func (s *State) sends(kinds ...projections.MessageKind) (list []Effect) {
	for i := range s.Outbox.Messages {
		m := &s.Outbox.Messages[i]
		if (len(kinds) == 0 || slices.Contains(kinds, m.Kind)) && s.due(m) {
			list = append(list, Effect{Do: Send, Turn: m.Turn, Call: m.Call, ID: m.ID})
		}
	}
	return list
}

// due reports whether a message is to be sent now. A child that waits for a person has received its
// task, and one that is to stop takes no decision.
func (s *State) due(m *projections.OutboxMessage) bool {
	switch m.Kind {
	case projections.TaskMessage:
		c := s.childCall(m.Turn, m.Call)
		return c != nil && len(c.Child.Waiting) == 0
	case projections.ForwardDecision:
		return s.Outbox.Cancels(m.Turn, m.Call) == nil
	}
	return true
}

// Ends lists the messages to other agents that need no definition and must not be lost with the
// agent: those that cancel children, and the reports to parents. A tombstone drops them, so the
// caller stores them before [State.Decide] records one.
func (s *State) Ends() []Effect {
	return s.sends(projections.CancelChild, projections.ReportToParent)
}

// Message returns the message that an effect sends. It reports false if that is not to be sent any
// more.
func (s *State) Message(self messages.AgentID, e Effect) (Message, bool) {
	m := s.Outbox.Message(e.ID)
	if e.Do != Send || m == nil || !s.due(m) {
		return Message{}, false
	}
	to, err := messages.ParseAgentID(m.To)
	msg := Message{To: to, Resend: true}
	switch m.Kind {
	case projections.TaskMessage:
		c := s.childCall(m.Turn, m.Call)
		msg.Command, msg.Resend = s.taskOf(self, c), !c.Child.Detached
		msg.Trace = s.Turn.CallSpan(self, &c.ToolCall)
	case projections.CancelChild:
		caller := messages.Caller{Agent: self.Full(), Turn: m.Turn, Call: m.Call}
		msg.Command = messages.CancelChild{ID: m.ID, Input: m.Input, Parent: messages.Parent{Caller: caller}, Reason: m.Reason}
	case projections.ForwardDecision:
		msg.Command = decisionOf(self, m.Decision)
	case projections.BeginFork:
		msg.Command = messages.BeginFork{ID: m.ID, Parent: self.Full(), At: m.At, Set: m.Set, Reason: m.Reason}
		msg.Trace = m.Trace
	case projections.ReportToParent:
		msg.Command, msg.Resend = s.report(self, s.Outbox.Task(m.Input), m.N), false
	}
	return msg, err == nil
}

// taskOf returns the task of a child: the argument input alone if it is a text and there is no
// other, else the arguments as they are.
func (s *State) taskOf(self messages.AgentID, c *projections.CallState) messages.Task {
	text := c.Arguments
	var fields map[string]json.RawMessage
	var only string
	if json.Unmarshal([]byte(c.Arguments), &fields) == nil && len(fields) == 1 && json.Unmarshal(fields["input"], &only) == nil {
		text = only
	}
	t := s.Turn
	return messages.Task{ID: c.Child.Input, Content: messages.TextContent(text), Parent: messages.Parent{
		Caller: messages.Caller{Agent: self.Full(), Turn: t.ID, Call: c.ID, Detached: c.Child.Detached},
		Above:  t.Callers, Limits: c.Child.Limits,
	}}
}

func decisionOf(self messages.AgentID, ev *messages.ChildDecided) messages.Command {
	by := messages.Forwarded{For: self.Full(), Person: ev.Person}
	switch ev.Command {
	case messages.Approve{}.CommandType():
		return messages.Approve{ID: ev.ID, Call: ev.Waits, Turn: ev.Of, ArgsHash: ev.ArgsHash, Remember: ev.Remember, Reason: ev.Reason, Forwarded: by}
	case messages.Deny{}.CommandType():
		return messages.Deny{ID: ev.ID, Call: ev.Waits, Turn: ev.Of, ArgsHash: ev.ArgsHash, Text: ev.Text, Remember: ev.Remember, Reason: ev.Reason, Forwarded: by}
	}
	return messages.Decide{ID: ev.ID, Call: ev.Waits, Turn: ev.Of, Outcome: ev.Outcome, Result: ev.Result, Reason: ev.Reason, Forwarded: by}
}

// report returns the report about a task as of event n, or about its end.
func (s *State) report(self messages.AgentID, task *projections.Task, n messages.EventNumber) messages.Report {
	r := messages.Report{What: messages.ReportGoing, N: n}
	switch {
	case task.End != nil:
		r = *task.End
	case task.Waits != "":
		r.What, r.Busy = messages.ReportWaiting, s.Turn.Paused() == ""
		r.Waiting, r.More = s.Waits(self)
	}
	r.ID = messages.ReportID(task.Input, r.N)
	r.Turn, r.Call, r.Child = task.Parent.Turn, task.Parent.Call, self.Full()
	return r
}

// EndOf returns the report about the end of a task, to be sent to its parent once more: the one
// before may be lost. It reports false if the task has not ended, its report is not stored yet, or
// its parent does not wait for it.
func (s *State) EndOf(self messages.AgentID, input string) (Message, bool) {
	task := s.Outbox.Task(input)
	if task == nil || task.End == nil || task.Parent.Detached || s.Outbox.Report(input) != nil {
		return Message{}, false
	}
	to, err := messages.ParseAgentID(task.Parent.Agent)
	return Message{To: to, Command: s.report(self, task, 0)}, err == nil
}

// messageStored records that a message is stored for another agent, which ends a report and the
// call of a detached child.
func (d *decision) messageStored(o MessageStored) {
	m := d.s.Outbox.Message(o.ID)
	switch {
	case m == nil:
	case m.Kind == projections.ReportToParent:
		d.emit(messages.ChildReported{Input: m.Input, Upto: m.N, What: d.s.report(d.env.Agent, d.s.Outbox.Task(m.Input), m.N).What})
	case m.Kind == projections.TaskMessage:
		if c := d.s.childCall(m.Turn, m.Call); c != nil && c.Child.Detached {
			d.emit(messages.ToolCompleted{Turn: c.Turn, Call: c.ID, Output: "Agent " + c.Child.Agent + " has begun; it works on its own and no answer comes from it here."})
			d.why = "a child has begun"
		}
	}
}
