package messages

import (
	"bytes"
	"encoding/json"
)

// Task is an input from a parent to its child.
type Task struct {
	// ID is derived from the call, so that a retry of the call has the same id.
	ID string `json:"id"`
	// Content is what the model of the child reads.
	Content Content `json:"content"`
	// Parent is the call whose task it is, and its limits.
	Parent Parent `json:"parent"`
}

// CommandType returns "task".
func (Task) CommandType() string { return "task" }

// CancelChild cancels a task: its turn is aborted if it runs, its input is cancelled if it waits,
// and refused if it has not arrived.
type CancelChild struct {
	ID string `json:"id"`
	// Input is the task's id.
	Input string `json:"input"`
	// Parent is the call whose task it was.
	Parent Parent `json:"parent"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "cancel_child".
func (CancelChild) CommandType() string { return "cancel_child" }

// Report is the state of a child, for its parent.
type Report struct {
	ID string `json:"id"`
	// Turn is the turn of the parent's call.
	Turn TurnID `json:"turn"`
	// Call is the parent's call.
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the child's event as of which this is so. A report that is not newer than an
	// earlier one has no effect. 0: the child has refused the task.
	N EventNumber `json:"n,omitempty"`
	// What is what the child reports.
	What ReportWhat `json:"what"`
	// Waiting replaces the list of an earlier report.
	Waiting []Wait `json:"waiting,omitempty"`
	// Busy reports whether other calls of its turn still run.
	Busy bool `json:"busy,omitempty"`
	// More reports whether more calls wait than Waiting holds.
	More bool `json:"more,omitempty"`
	// Output is the answer of a completed child.
	Output string `json:"output,omitempty"`
	// Reason is why there is no answer, as a word to branch on.
	Reason string `json:"reason,omitempty"`
	// Message is the same for a person.
	Message string `json:"message,omitempty"`
	// Blob is the reference to an output that is too large for a frame. It belongs to the
	// child; the parent stores a copy. Nil: Output holds it.
	Blob *Blob `json:"blob,omitempty"`
	Used `json:",inline"`
}

// CommandType returns "report".
func (Report) CommandType() string { return "report" }

// DecisionEffect is the outcome of a forwarded decision, for the agent that has forwarded it.
type DecisionEffect struct {
	ID string `json:"id"`
	// Decision is the id of the forwarded command.
	Decision string `json:"decision"`
	// N is the event that records the decision. 0: it had no effect.
	N EventNumber `json:"n,omitempty"`
	// Refused is why it had none, as a word to branch on. Empty: it had its effect.
	Refused Code `json:"refused,omitempty"`
	// Message is the reason for a person.
	Message string `json:"message,omitempty"`
}

// CommandType returns "decision_effect".
func (DecisionEffect) CommandType() string { return "decision_effect" }

// ReportWhat is what a child reports to its parent.
type ReportWhat string

// The kinds of a Report.
const (
	ReportWaiting   ReportWhat = "waiting"   // the child waits for a person
	ReportGoing     ReportWhat = "going"     // it no longer waits
	ReportCompleted ReportWhat = "completed" // its turn has completed
	ReportFailed    ReportWhat = "failed"    // its turn has failed
	ReportAborted   ReportWhat = "aborted"   // its turn was aborted
	ReportCancelled ReportWhat = "cancelled" // its input was cancelled before a model saw it
	ReportDropped   ReportWhat = "dropped"   // its input was dropped by a clear or delete
	ReportRefused   ReportWhat = "refused"   // it has not accepted the task
)

// Ends reports whether this is the last report about the task.
func (w ReportWhat) Ends() bool { return w != ReportWaiting && w != ReportGoing }

// DecidedBy returns the person whose decision an agent forwards. Nil: the command is not a
// forwarded decision, or names no person. The person is claimed by that agent; the log of
// the agent that received the decision shows whether it was authenticated.
func DecidedBy(c Command) *Person {
	p := ForwardedBy(c).Person
	if p == nil {
		return nil
	}
	claimed := ClaimedBy(p.Name)
	if account := ClaimedBy(p.Account); claimed != nil && account != nil {
		claimed.Account = account.Name
	}
	return claimed
}

// Body returns a command as it is published for another agent.
func Body(c Command) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, err
	}
	return append([]byte(`{"type":"`+c.CommandType()+`",`), bytes.TrimSpace(buf.Bytes())[1:]...), nil
}

// ParsePeer reads a command of another agent: a Task, CancelChild, Report or DecisionEffect, or a
// forwarded decision of a person.
func ParsePeer(a AgentID, header Header, body []byte) (Command, error) {
	return parseCommandOf(a, header, body, true)
}

func (c Task) check() error {
	if c.ID == "" || len(c.Parent.Above) >= 4*MaxCallers {
		return Refuse(BadInput, "a task has an id and at most %d callers", 4*MaxCallers)
	}
	return c.Parent.check("a task")
}

func (c CancelChild) check() error { return c.Parent.check("a cancel_child") }

func (c Report) check() error {
	if c.Turn == "" || c.Call == "" || c.Child == "" || len(c.Waiting) > MaxWaits {
		return Refuse(BadInput, "a report names a turn, a call, a child, and at most %d calls that wait", MaxWaits)
	}
	return nil
}

func (c DecisionEffect) check() error {
	if c.Decision == "" {
		return Refuse(BadInput, "a decision_effect names its decision")
	}
	return nil
}

func (p Parent) check(what string) error {
	if _, err := ParseAgentID(p.Agent); err != nil {
		return Refuse(BadInput, "%s names its parent: %v", what, err)
	}
	return nil
}
