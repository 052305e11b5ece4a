package turn

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// The child's side of an agent that is a tool: the tasks that it was given, and
// what it owes those who gave them. The parent's is in children.go.

// Task is an input that is another agent's call, until its end has been
// reported.
type Task struct {
	Input  string
	Parent messages.Parent

	Waits string // names what it waits for; empty: nothing
	// Changed is the event since which the parent is to be sent another report, Told the
	// event up to which it was.
	Changed, Told messages.EventNumber
	End           *messages.Report // what is reported of its end; nil: it has not ended
}

func (s *State) reportOf(self messages.AgentID, task *Task) messages.Report {
	r := messages.Report{What: messages.ReportGoing}
	if task.End != nil {
		r = *task.End
	} else if task.Waits != "" {
		r.What, r.Busy = messages.ReportWaiting, s.Turn.Paused() == ""
		r.Waiting, r.More = s.waits(self)
	}
	r.ID = messages.ReportID(self.Full(), task.Input, task.Changed)
	r.Turn, r.Call, r.Child, r.N = task.Parent.Turn, task.Parent.Call, self.Full(), task.Changed
	return r
}

func (task *Task) owes() bool { return !task.Parent.Detached && task.Changed > task.Told }

// task accepts another agent's call as an input.
func (d *decision) task(c messages.Task) error {
	if given := d.s.given(c.ID); given != nil {
		if given.Recalled {
			return d.noop(c, "it was taken back before it came")
		}
		return &ProcessedError{ID: c.ID, N: given.N}
	}
	if d.env.Definition.Unknown {
		return d.unknown()
	}
	in := messages.Input{ID: c.ID, Content: c.Content}
	if err := d.refuseInput(in); err != nil {
		return err
	}
	d.accept(in, &c.Parent)
	return nil
}

// GivenTask is a task that came to the agent at event N, or that was taken back at N before it
// came.
type GivenTask struct {
	ID       string
	N        messages.EventNumber
	Recalled bool
}

// maxGiven is how many of the newest tasks are kept. An agent that a call brings to life has
// one: its address is made of the call.
const maxGiven = 64

// given returns the task with this id; nil if none is kept.
func (s *State) given(id string) *GivenTask {
	if i := slices.IndexFunc(s.Given, func(g GivenTask) bool { return g.ID == id }); i >= 0 {
		return &s.Given[i]
	}
	return nil
}

// Came returns the event at which the task with this id came, and reports whether it did.
func (s *State) Came(task string) (messages.EventNumber, bool) {
	if g := s.given(task); g != nil && !g.Recalled {
		return g.N, true
	}
	return 0, false
}

func (s *State) give(g GivenTask) {
	s.Given = append(s.Given[:len(s.Given):len(s.Given)], g)
	s.Given = s.Given[max(0, len(s.Given)-maxGiven):]
}

// recall takes a task back.
func (d *decision) recall(c messages.Recall) error {
	i := slices.IndexFunc(d.s.Tasks, func(task Task) bool { return task.Input == c.Input })
	_, known := d.s.Came(c.Input)
	if !known {
		_, known = d.s.Processed(c.Input) // an id that is no task's
	}
	switch {
	case i < 0 && known, i >= 0 && d.s.Tasks[i].End != nil:
		return d.noop(c, "the task has ended")
	case i < 0:
		d.parent = c.Parent.Agent
		d.configure()
		d.emit(messages.InputRecalled{Input: c.Input, Parent: c.Parent, Reason: c.Reason})
	case slices.Contains(d.s.TurnInputs(), c.Input):
		d.abort(c.CommandType(), c.Reason, "")
		d.startNext()
	default:
		d.emit(messages.InputCancelled{Input: c.Input, Reason: c.Reason})
	}
	return nil
}

// evolveTasks folds what concerns the agent's own parents, before the event
// itself changes the turn.
func (s *State) evolveTasks(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		if ev.Parent != nil {
			s.Tasks = append(s.Tasks, Task{Input: ev.Input, Parent: *ev.Parent})
			s.give(GivenTask{ID: ev.Input, N: s.Last})
		}
	case messages.InputRecalled:
		s.give(GivenTask{ID: ev.Input, N: s.Last, Recalled: true})
		s.Tasks = append(s.Tasks, Task{
			Input: ev.Input, Parent: ev.Parent, Changed: s.Last,
			End: &messages.Report{What: messages.ReportCancelled, Message: ev.Reason},
		})
	case messages.ChildReported:
		s.reported(ev)
	case messages.ChildAborted:
		s.Stopping = append(s.Stopping, Stopping{ev.Turn, ev.Call, ev.Child, ev.Input, ev.Reason})
	case messages.ChildStopped:
		s.Stopping = slices.DeleteFunc(slices.Clone(s.Stopping), func(st Stopping) bool {
			return st.Turn == ev.Turn && st.Call == ev.Call && st.Child == ev.Child
		})
		if len(s.Stopping) == 0 {
			s.Stopping = nil
		}
	}
	s.evolvePassed(ev)
	if len(s.Tasks) > 0 {
		s.endTasks(ev)
	}
}

func (s *State) reported(ev messages.ChildReported) {
	for i := range s.Tasks {
		task := &s.Tasks[i]
		if task.Input != ev.Input {
			continue
		}
		task.Told = max(task.Told, ev.Upto)
		if task.End != nil && task.Told >= task.Changed {
			s.dropTask(i)
		}
		return
	}
}

func (s *State) dropTask(i int) {
	if s.Tasks = slices.Delete(slices.Clone(s.Tasks), i, i+1); len(s.Tasks) == 0 {
		s.Tasks = nil
	}
}

// endTasks notes how the tasks end that ev is the terminal event of.
func (s *State) endTasks(ev messages.Event) {
	inputs, ends := messages.Ended(ev)
	if !ends {
		return
	}
	for i := len(s.Tasks) - 1; i >= 0; i-- {
		task := &s.Tasks[i]
		if task.End != nil || !slices.Contains(inputs, task.Input) {
			continue
		}
		if task.Parent.Detached {
			s.dropTask(i)
			continue
		}
		task.Waits, task.Changed, task.End = "", s.Last, s.endOf(ev)
	}
}

func (s *State) endOf(ev messages.Event) *messages.Report {
	r := new(messages.Report)
	if t := s.Turn; t != nil && t.ID == messages.TurnOf(ev) {
		r.Spent = messages.Spent{Usage: t.Total(), Cost: t.Used.Cost, Tokens: t.Used.Tokens}
	}
	switch ev := ev.(type) {
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

// endText is an answer as a parent reads it: with a remark where it is not whole.
func endText(ev messages.TurnCompleted) string {
	switch ev.Finish {
	case messages.FinishLength, messages.FinishFilter, messages.FinishRefusal, messages.FinishEmpty:
		if ev.Blob == nil {
			return strings.TrimPrefix(ev.Output+"\n[The answer did not end by itself: "+ev.Finish+"]", "\n")
		}
	}
	return ev.Output
}

// noteWaits notes whether the task of the running turn waits for something else
// than its parent knows of.
func (s *State) noteWaits() {
	if s.Turn == nil {
		return
	}
	waits := s.waitsKey()
	for i := range s.Tasks {
		if task := &s.Tasks[i]; task.End == nil && task.Waits != waits && s.worksOn(task.Input) {
			task.Waits, task.Changed = waits, s.Last
		}
	}
}

// worksOn reports whether the input ends with the running turn.
func (s *State) worksOn(input string) bool {
	return slices.Contains(s.Turn.Inputs, input) || slices.ContainsFunc(s.Inputs.Steered, func(in projections.Input) bool { return in.ID == input })
}

// waitsKey names everything that the turn waits for. Empty: nothing.
func (s *State) waitsKey() string {
	list, more := s.waits(messages.AgentID{})
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(s.Turn.Paused())
	if more {
		b.WriteString("\x00more")
	}
	for _, w := range list {
		b.WriteString("\x00" + w.Agent + "\x00" + string(w.Turn) + "\x00" + string(w.Call) + "\x00" + w.Kind)
	}
	return b.String()
}

// limitsOf are what a parent has left for the turn of an input.
func (s *State) limitsOf(input string) messages.Limits {
	for i := range s.Tasks {
		if s.Tasks[i].Input == input {
			return s.Tasks[i].Parent.Limits
		}
	}
	return messages.Limits{}
}
