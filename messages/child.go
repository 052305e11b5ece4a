package messages

import "time"

// An agent that is the tool of another agent is its child. Each has its own log, and the
// logs refer to each other: child.spawned names the child, the child's input.accepted names
// the parent. They send commands to each other, at least once, with ids that are derived
// from the content:
//
//	Task            parent to child   an input
//	CancelChild     parent to child   cancel the input
//	Report          child to parent   it waits for a person, continues, or has ended
//	DecisionEffect  child to parent   the effect of a forwarded decision
//
// None of these is accepted on an input or command subject.

// Caller is the tool call of a parent that is a child's task.
type Caller struct {
	// Agent is the full address of the parent.
	Agent string `json:"agent"`
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	// Detached reports whether the call does not wait for the answer.
	Detached bool `json:"detached,omitempty"`
}

// Parent is the caller of an agent, and the limits of the task.
type Parent struct {
	Caller `json:",inline"`
	// Above are the callers of the parent, the root's first.
	Above []Caller `json:"above,omitempty"`
	// Limits are limits of the turn, in addition to those of the child's definition.
	Limits Limits `json:"limits,omitzero"`
}

// Chain returns all callers of the task, the root's first and the parent's last.
func (p Parent) Chain() []Caller {
	return append(p.Above[:len(p.Above):len(p.Above)], p.Caller)
}

// Wait is a call of a descendant that a person must decide, or a turn that a person must
// resume.
type Wait struct {
	// Agent is the full address of the agent whose call or turn it is.
	Agent string `json:"agent"`
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call,omitempty"`
	Tool  string `json:"tool,omitempty"`
	// Kind is what the call or turn waits for.
	Kind WaitKind `json:"kind"`
	// Arguments are those that the call would run with.
	Arguments string `json:"arguments,omitempty"`
	// Cut reports whether Arguments are shortened.
	Cut bool `json:"cut,omitempty"`
	// ArgsHash is the hash of the whole arguments.
	ArgsHash string `json:"args_hash,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// ExpiresAt is when an approval is denied without a decision. Nil: never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// WaitKind is what a call or turn waits for.
type WaitKind string

// The kinds of a Wait.
const (
	WaitApproval WaitKind = "approval" // a person approves or denies the call
	WaitUnknown  WaitKind = "unknown"  // a person decides what became of the call
	WaitPaused   WaitKind = "paused"   // a person resumes the turn
)

// Used is what a turn and all its descendants have used.
type Used struct {
	Usage Usage `json:"usage,omitzero"`
	Cost  Cost  `json:"cost_nanos,omitempty"`
	// Tokens are those that count against limits: the usage, and what was reserved for calls
	// whose answer was lost.
	Tokens int `json:"tokens,omitempty"`
}

// ChildSpawned records that a call is the task of a child. It comes before the task is sent.
type ChildSpawned struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Tool  string `json:"tool"`
	Child string `json:"child"`
	// Input is the id of the child's input.
	Input string `json:"input"`
	// Limits are the child's share of what the parent may still use.
	Limits Limits `json:"limits,omitzero"`
	// Detached reports whether the call does not wait for the child.
	Detached bool `json:"detached,omitempty"`
}

// EventType returns "child.spawned".
func (ChildSpawned) EventType() string { return "child.spawned" }

// ChildWaiting records what a child waits for. It replaces an earlier list.
type ChildWaiting struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the event of the child as of which this is so.
	N EventNumber `json:"n"`
	// Waiting are the calls and turns that wait for a person.
	Waiting []Wait `json:"waiting"`
	// More reports whether more calls wait than are listed.
	More bool `json:"more,omitempty"`
	// Busy reports whether other calls of its turn still run.
	Busy bool `json:"busy,omitempty"`
}

// EventType returns "child.waiting".
func (ChildWaiting) EventType() string { return "child.waiting" }

// ChildResumed records that a child no longer waits.
type ChildResumed struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the event of the child as of which this is so.
	N EventNumber `json:"n"`
}

// EventType returns "child.resumed".
func (ChildResumed) EventType() string { return "child.resumed" }

// ChildDecided records a person's decision about a waiting call of a descendant. A later
// child.settled reports whether it had its effect.
type ChildDecided struct {
	// Turn is the turn of the call that is the child.
	Turn TurnID `json:"turn"`
	// Call is the call that is the child.
	Call CallID `json:"call"`
	// Agent is the full address of the agent whose call waits.
	Agent string `json:"agent"`
	// Of is the turn of the call that waits.
	Of TurnID `json:"of"`
	// Waits is the call that waits.
	Waits CallID `json:"waits"`
	// Command is the type of the command that is forwarded: approve, deny or decide.
	Command string `json:"command"`
	// ID is the id of that command.
	ID string `json:"id"`
	// ArgsHash is the hash of the arguments that the person has seen.
	ArgsHash string `json:"args_hash,omitempty"`
	// Text is what the model reads of a denial. Nil: the usual text.
	Text *string `json:"text,omitempty"`
	// Remember reports whether the decision applies to later calls of the tool, too.
	Remember bool `json:"remember,omitempty"`
	// Outcome is the outcome of a decide.
	Outcome Outcome `json:"outcome,omitempty"`
	// Result is the result of a decide.
	Result string `json:"result,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Person is the person who decided. Nil: no person is named.
	Person *Person `json:"person,omitempty"`
}

// EventType returns "child.decided".
func (ChildDecided) EventType() string { return "child.decided" }

// ChildSettled records the outcome of a forwarded decision. It has no effect if the call was
// decided elsewhere, or no longer waited.
type ChildSettled struct {
	// Turn is the turn of the call that is the child, as in child.decided.
	Turn TurnID `json:"turn"`
	// Call is the call that is the child.
	Call CallID `json:"call"`
	// Agent is the full address of the agent whose call the decision is about.
	Agent string `json:"agent"`
	// Of is the turn of that call.
	Of TurnID `json:"of"`
	// Waits is that call.
	Waits CallID `json:"waits"`
	// N is the event of Agent that records the decision. 0: it had no effect.
	N EventNumber `json:"n,omitempty"`
	// Refused is why it had none, as a word to branch on. Empty: it had its effect.
	Refused Code `json:"refused,omitempty"`
	// Message is the reason for a person, or that the same was decided before.
	Message string `json:"message,omitempty"`
	// Command is the type of the command that was forwarded.
	Command string `json:"command"`
	// ID is the id of that command.
	ID string `json:"id"`
}

// EventType returns "child.settled".
func (ChildSettled) EventType() string { return "child.settled" }

// ChildCompleted records that a child has answered. The answer is in the call's
// tool.completed.
type ChildCompleted struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the event of the child as of which this is so.
	N    EventNumber `json:"n"`
	Used `json:",inline"`
}

// EventType returns "child.completed".
func (ChildCompleted) EventType() string { return "child.completed" }

// ChildFailed records that a child has ended without an answer.
type ChildFailed struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the event of the child as of which this is so. 0: the child has not accepted the task.
	N EventNumber `json:"n,omitempty"`
	// Reason is a word to branch on: the kind of its turn.failed, or its reason if it has no
	// kind; `aborted`, `cancelled`, `dropped` or `refused`; or too_large for an answer that does not fit.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Used    `json:",inline"`
}

// EventType returns "child.failed".
func (ChildFailed) EventType() string { return "child.failed" }

// ChildAborted records that a call no longer waits for its child, and that the child is cancelled.
type ChildAborted struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// Input is the id of the child's input.
	Input  string `json:"input"`
	Reason string `json:"reason"`
}

// EventType returns "child.aborted".
func (ChildAborted) EventType() string { return "child.aborted" }

// ChildStopped records that an aborted child has ended, and what it has used.
type ChildStopped struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Child string `json:"child"`
	// N is the event of the child as of which this is so. 0: the child has not accepted the task.
	N EventNumber `json:"n,omitempty"`
	// How is how it ended.
	How  ReportWhat `json:"how"`
	Used `json:",inline"`
}

// EventType returns "child.stopped".
func (ChildStopped) EventType() string { return "child.stopped" }

// ChildReported is an event of a child. It records that reports about a task are stored for the
// parent.
type ChildReported struct {
	// Input is the id of the task.
	Input string `json:"input"`
	// Upto is the event up to which reports are stored.
	Upto EventNumber `json:"upto"`
	// What is the kind of the newest one.
	What ReportWhat `json:"what"`
}

// EventType returns "child.reported".
func (ChildReported) EventType() string { return "child.reported" }

// InputRecalled records that a parent has cancelled an input that has not arrived. The input
// is refused when it arrives.
type InputRecalled struct {
	Input string `json:"input"`
	// Parent is the call whose task the input is.
	Parent Parent `json:"parent"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "input.recalled".
func (InputRecalled) EventType() string { return "input.recalled" }
