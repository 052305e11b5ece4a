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
	Agent string `json:"agent"` // its full address
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
	// Limits bound the turn, in addition to those of the child's definition.
	Limits Limits `json:"limits,omitzero"`
}

// Chain returns all callers of the task, the root's first and the parent's last.
func (p Parent) Chain() []Caller {
	return append(p.Above[:len(p.Above):len(p.Above)], p.Caller)
}

// Wait is a call of a descendant that a person must decide, or a turn that a person must
// resume.
type Wait struct {
	Agent string `json:"agent"` // whose it is, by its full address
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call,omitempty"`
	Tool  string `json:"tool,omitempty"`
	// Kind is what the call waits for; WaitPaused if the wait is a turn's.
	Kind WaitKind `json:"kind"`
	// Arguments are those it would run with. Cut reports whether they are shortened;
	// ArgsHash is the hash of the whole.
	Arguments string `json:"arguments,omitempty"`
	Cut       bool   `json:"cut,omitempty"`
	ArgsHash  string `json:"args_hash,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// ExpiresAt is when an approval is denied without a decision. Nil: never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// WaitKind is what a Wait is for.
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
	// Tokens count against limits: those of Usage, and those reserved for calls whose
	// answer was lost.
	Tokens int `json:"tokens,omitempty"`
}

// ChildSpawned records that a call is the task of a child.
type ChildSpawned struct {
	Turn  TurnID `json:"turn"`
	Call  CallID `json:"call"`
	Tool  string `json:"tool"`
	Child string `json:"child"` // its full address
	Input string `json:"input"` // the id of the child's input
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
	// N is the child's event as of which this is so.
	N       EventNumber `json:"n"`
	Waiting []Wait      `json:"waiting"`
	// More reports whether more calls wait than are listed.
	More bool `json:"more,omitempty"`
	// Busy reports whether other calls of its turn still run.
	Busy bool `json:"busy,omitempty"`
}

// EventType returns "child.waiting".
func (ChildWaiting) EventType() string { return "child.waiting" }

// ChildResumed records that a child no longer waits.
type ChildResumed struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n"`
}

// EventType returns "child.resumed".
func (ChildResumed) EventType() string { return "child.resumed" }

// ChildDecided records a person's decision about a waiting call of a descendant. A later
// child.settled reports whether it had its effect.
type ChildDecided struct {
	Turn TurnID `json:"turn"` // of the call that is the child
	Call CallID `json:"call"`
	// Agent, Of and Waits name the call that waits: whose it is, in which turn.
	Agent string `json:"agent"`
	Of    TurnID `json:"of"`
	Waits CallID `json:"waits"`
	// Command is approve, deny or decide, ID that of the command which is forwarded. The
	// rest is the decision.
	Command  string  `json:"command"`
	ID       string  `json:"id"`
	ArgsHash string  `json:"args_hash,omitempty"`
	Text     *string `json:"text,omitempty"`
	Remember bool    `json:"remember,omitempty"`
	Outcome  Outcome `json:"outcome,omitempty"`
	Result   string  `json:"result,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	// Person is the person who decided. Nil: no person is named.
	Person *Person `json:"person,omitempty"`
}

// EventType returns "child.decided".
func (ChildDecided) EventType() string { return "child.decided" }

// ChildSettled records the outcome of a forwarded decision. It has no effect if the call was
// decided elsewhere, or no longer waited.
type ChildSettled struct {
	Turn TurnID `json:"turn"` // of the call that is the child, as in child.decided
	Call CallID `json:"call"`
	// Agent, Of and Waits name the call that the decision is about.
	Agent string `json:"agent"`
	Of    TurnID `json:"of"`
	Waits CallID `json:"waits"`
	// N is the event of Agent that records the decision. 0: it had no effect.
	N EventNumber `json:"n,omitempty"`
	// Refused is why it had none, as a word to branch on. Empty: it had its effect.
	Refused Code `json:"refused,omitempty"`
	// Message is the reason for a person, or that the same was decided before.
	Message string `json:"message,omitempty"`
	// Command and ID are those of child.decided.
	Command string `json:"command"`
	ID      string `json:"id"`
}

// EventType returns "child.settled".
func (ChildSettled) EventType() string { return "child.settled" }

// ChildCompleted records that a child has answered. The answer is in the call's
// tool.completed.
type ChildCompleted struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n"`
	Used  `json:",inline"`
}

// EventType returns "child.completed".
func (ChildCompleted) EventType() string { return "child.completed" }

// ChildFailed records that a child has ended without an answer.
type ChildFailed struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n,omitempty"` // 0: it was never accepted
	// Reason is a word to branch on: the kind of its turn.failed, or the reason where that has
	// none, aborted, cancelled, dropped, refused, or too_large for an answer that does not fit.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Used    `json:",inline"`
}

// EventType returns "child.failed".
func (ChildFailed) EventType() string { return "child.failed" }

// ChildAborted records that a call no longer waits for its child, which is to stop.
type ChildAborted struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Child  string `json:"child"`
	Input  string `json:"input"`
	Reason string `json:"reason"`
}

// EventType returns "child.aborted".
func (ChildAborted) EventType() string { return "child.aborted" }

// ChildStopped records that an aborted child has ended, and what it has used.
type ChildStopped struct {
	Turn  TurnID      `json:"turn"`
	Call  CallID      `json:"call"`
	Child string      `json:"child"`
	N     EventNumber `json:"n,omitempty"`
	// How is how it ended.
	How  ReportWhat `json:"how"`
	Used `json:",inline"`
}

// EventType returns "child.stopped".
func (ChildStopped) EventType() string { return "child.stopped" }

// ChildReported is an event of a child: reports about a task, up to that as of event Upto, are
// stored for its parent.
type ChildReported struct {
	Input string      `json:"input"`
	Upto  EventNumber `json:"upto"`
	What  ReportWhat  `json:"what"`
}

// EventType returns "child.reported".
func (ChildReported) EventType() string { return "child.reported" }

// InputRecalled records that a parent has cancelled an input that has not arrived. The input
// is refused when it arrives.
type InputRecalled struct {
	Input  string `json:"input"`
	Parent Parent `json:"parent"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "input.recalled".
func (InputRecalled) EventType() string { return "input.recalled" }
