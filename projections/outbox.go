package projections

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// MessageKind is what an [OutboxMessage] is.
type MessageKind string

// The kinds of messages to other agents, each with what ends it.
const (
	TaskMessage     MessageKind = "task"     // to a child, until the call has an outcome
	CancelChild     MessageKind = "cancel"   // to a child, until it has ended (child.stopped)
	ForwardDecision MessageKind = "decision" // to an agent below, until its effect is known (child.settled)
	ReportToParent  MessageKind = "report"   // to a parent, until it is stored for it (child.reported)
	BeginFork       MessageKind = "fork"     // to a fork, until its effect is known (fork.settled)
)

// OutboxMessage is a message that an agent sends to another one until its log records that
// this is no longer needed.
type OutboxMessage struct {
	Kind MessageKind
	// ID is that of the command that is sent: the same however often it is.
	ID string
	To string // the full address of an agent
	// N is the event since which it is to be sent.
	N messages.EventNumber
	// Turn and Call name the call that the message is about. Empty for a report and for a fork.
	Turn messages.TurnID
	Call messages.CallID
	// Input is the task that the message is about. Empty for a decision and for a fork.
	Input string
	// At is the newest event that a fork has of this agent.
	At       messages.EventNumber
	Set      messages.ForkChanges   // what a fork has in place of its kind's definition
	Reason   string                 // why a child is cancelled, or a fork made
	Decision *messages.ChildDecided // what is forwarded; nil for other kinds
	// Trace is the trace context of the command that asked for a fork. Empty: there is none.
	Trace messages.TraceContext
}

// Task is an input that is another agent's call.
type Task struct {
	Input  string
	Parent messages.Parent
	// N is the event that accepted it. 0: it was cancelled before it came.
	N messages.EventNumber
	// Waits names what its turn waits for. Empty: nothing.
	Waits string
	// End is how it ended, as its parent is to know, but for the addresses. Nil: it has not.
	End *messages.Report
}

// maxTasks is how many of the newest tasks are kept. An agent that a call created
// has one: its address is made of the call.
const maxTasks = 64

// Outbox holds the messages that an agent has to send to others, oldest first, and the tasks
// that it was given, oldest first. Tasks are kept after their end, so that one which is sent
// again has no second effect and is answered by the same report. The zero value is empty.
type Outbox struct {
	Messages []OutboxMessage
	Tasks    []Task
}

// apply folds an event, before t, the running turn, does.
func (o *Outbox) apply(e *event, t *TurnState) {
	n := e.n
	switch ev := e.Event.(type) {
	case messages.InputAccepted:
		if ev.Parent != nil {
			o.given(Task{Input: ev.Input, Parent: *ev.Parent, N: n})
		}
	case messages.InputRecalled:
		o.given(Task{Input: ev.Input, Parent: ev.Parent})
		o.end(&o.Tasks[len(o.Tasks)-1], n, messages.Report{What: messages.ReportCancelled, Message: ev.Reason})
	case messages.ChildSpawned:
		o.add(OutboxMessage{Kind: TaskMessage, ID: ev.Input, To: ev.Child, N: n, Turn: ev.Turn, Call: ev.Call, Input: ev.Input})
	case messages.ChildAborted:
		o.add(OutboxMessage{Kind: CancelChild, ID: messages.CancelID(ev.Input), To: ev.Child, N: n, Turn: ev.Turn, Call: ev.Call, Input: ev.Input, Reason: ev.Reason})
	case messages.ChildDecided:
		o.add(OutboxMessage{Kind: ForwardDecision, ID: ev.ID, To: ev.Agent, N: n, Turn: ev.Turn, Call: ev.Call, Decision: &ev})
	case messages.ChildSettled:
		o.drop(func(m *OutboxMessage) bool { return m.ID == ev.ID })
	case messages.ChildStopped: // and what is below it has ended, too
		o.drop(func(m *OutboxMessage) bool { return m.about(ev.Turn, ev.Call) })
	case messages.ForkRequested:
		o.add(OutboxMessage{Kind: BeginFork, ID: ev.Begin, To: ev.Fork, N: n, At: ev.At, Set: ev.Set, Reason: ev.Reason, Trace: e.trace})
	case messages.ForkSettled:
		o.drop(func(m *OutboxMessage) bool { return m.Kind == BeginFork && m.ID == ev.Begin })
	case messages.ChildReported:
		o.drop(func(m *OutboxMessage) bool { return m.reports(ev.Input) && m.N <= ev.Upto })
	default:
		if e.Is(messages.BeginsFork) { // what was to be sent, the agent sends that the events were of
			*o = Outbox{}
		} else if e.Is(messages.EndsTool) {
			o.drop(func(m *OutboxMessage) bool { return m.Kind == TaskMessage && m.about(e.Turn, e.Call) })
		} else if e.Is(messages.EndsInput) && o.works() {
			o.inputsEnded(e, t)
		}
	}
}

// inputsEnded folds the end of inputs, of which some may be tasks.
func (o *Outbox) inputsEnded(e *event, t *TurnState) {
	inputs := messages.InputsOf(e.Event)
	for i := range o.Tasks {
		if task := &o.Tasks[i]; task.End == nil && slices.Contains(inputs, task.Input) {
			o.end(task, e.n, endOf(e, t))
		}
	}
}

// add puts a message in the place of those that it supersedes.
func (o *Outbox) add(m OutboxMessage) {
	o.drop(func(old *OutboxMessage) bool {
		return old.ID == m.ID || m.Kind == ReportToParent && old.reports(m.Input)
	})
	o.Messages = append(o.Messages, m)
}

func (o *Outbox) drop(is func(*OutboxMessage) bool) {
	o.Messages = without(o.Messages, is)
}

func (m *OutboxMessage) about(turn messages.TurnID, call messages.CallID) bool {
	return m.Kind != ReportToParent && m.Turn == turn && m.Call == call
}

func (m *OutboxMessage) reports(input string) bool {
	return m.Kind == ReportToParent && m.Input == input
}

// given adds a task, in the place of the oldest of too many that is over.
func (o *Outbox) given(task Task) {
	o.Tasks = append(o.Tasks, task)
	if len(o.Tasks) <= maxTasks {
		return
	}
	if i := slices.IndexFunc(o.Tasks, func(t Task) bool { return t.End != nil && o.Report(t.Input) == nil }); i >= 0 {
		o.Tasks = slices.Delete(o.Tasks, i, i+1)
	}
}

// end notes the end of a task.
func (o *Outbox) end(task *Task, n messages.EventNumber, r messages.Report) {
	r.N = n
	task.Waits, task.End = "", &r
	o.report(task, n)
}

// report has the parent of a task, if it waits, sent what is so as of event n.
func (o *Outbox) report(task *Task, n messages.EventNumber) {
	if !task.Parent.Detached {
		o.add(OutboxMessage{Kind: ReportToParent, ID: messages.ReportID(task.Input, n), To: task.Parent.Agent, N: n, Input: task.Input})
	}
}

// works reports whether a task has not ended.
func (o *Outbox) works() bool {
	return slices.ContainsFunc(o.Tasks, func(t Task) bool { return t.End == nil })
}

// Message returns the message with this id; nil if there is none.
func (o *Outbox) Message(id string) *OutboxMessage {
	return firstOf(o.Messages, func(m *OutboxMessage) bool { return m.ID == id })
}

// Report returns the report about a task that is to be sent; nil if there is none.
func (o *Outbox) Report(input string) *OutboxMessage {
	return firstOf(o.Messages, func(m *OutboxMessage) bool { return m.reports(input) })
}

// Cancels returns the message that cancels the child of a call; nil if there is none.
func (o *Outbox) Cancels(turn messages.TurnID, call messages.CallID) *OutboxMessage {
	return firstOf(o.Messages, func(m *OutboxMessage) bool { return m.Kind == CancelChild && m.about(turn, call) })
}

// Task returns the task with this id; nil if none is kept.
func (o *Outbox) Task(input string) *Task {
	return firstOf(o.Tasks, func(t *Task) bool { return t.Input == input })
}

// callers returns the callers above the first of these inputs that is a task.
func (o *Outbox) callers(inputs []string) []messages.Caller {
	for _, id := range inputs {
		if task := o.Task(id); task != nil {
			return task.Parent.Chain()
		}
	}
	return nil
}

// Size estimates how many bytes the texts of ended tasks take.
func (o *Outbox) Size() (size int) {
	for i := range o.Tasks {
		if end := o.Tasks[i].End; end != nil {
			size += len(end.Output) + len(end.Message)
		}
	}
	return size
}

// endOf returns what a parent is to know of the end of a task; t is its turn, or another.
func endOf(e *event, t *TurnState) (r messages.Report) {
	if t != nil && t.ID == e.Turn {
		r.Used = messages.Used{Usage: t.Total(), Cost: t.Used.Cost, Tokens: t.Used.Tokens}
	}
	switch ev := e.Event.(type) {
	case messages.TurnCompleted:
		r.What, r.Output, r.Blob = messages.ReportCompleted, endText(ev), ev.Blob
	case messages.TurnFailed:
		r.What, r.Reason, r.Message = messages.ReportFailed, ev.Why(), ev.Message
	case messages.TurnAborted:
		r.What, r.Message = messages.ReportAborted, ev.Reason
	case messages.InputCancelled:
		r.What, r.Message = messages.ReportCancelled, ev.Reason
	case messages.InputDropped:
		r.What, r.Message = messages.ReportDropped, ev.Reason
	}
	return r
}

// endText returns an answer as a parent reads it: with a remark where it is not whole.
func endText(ev messages.TurnCompleted) string {
	if ev.Blob == nil && slices.Contains(remarked, ev.Finish) {
		return strings.TrimPrefix(ev.Output+"\n[The answer did not end by itself: "+ev.Finish+"]", "\n")
	}
	return ev.Output
}

// remarked are the reasons for which an answer is not whole, or none.
var remarked = []string{messages.FinishLength, messages.FinishFilter, messages.FinishRefusal, messages.FinishEmpty}
