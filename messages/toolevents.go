package messages

import "time"

// OnUnknown is what to do with a tool's call if the node, not the tool, stopped before its
// result was stored. Empty: pause.
type OnUnknown string

// The actions. Calls of tools that only read are never flagged for repeating another one.
const (
	ReadOnly  OnUnknown = "read_only" // run it again: the tool only reads
	Rerun     OnUnknown = "rerun"     // run it again with the same idempotency key
	Reconcile OnUnknown = "reconcile" // ask the tool for the outcome of the key
	Pause     OnUnknown = "pause"     // pause the turn until a person decides
)

// By is where the outcome of a call, or the decision about it, comes from.
type By string

// The sources of outcomes and decisions.
const (
	ByDecision   By = "decision"   // a person decided
	ByRemembered By = "remembered" // a person decided earlier, for later calls as well
	ByTimeout    By = "timeout"    // the time for a decision had passed
	ByReconcile  By = "reconcile"  // the tool's reconcile function
)

// ToolRequested is a call of a tool as the model requested it.
type ToolRequested struct {
	Turn TurnID `json:"turn"`
	Step int    `json:"step"`
	// Call is the id of the call, as the model gave it.
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// Arguments are the arguments as the model wrote them, usually JSON.
	Arguments string `json:"arguments"`
}

// EventType returns "tool.requested".
func (ToolRequested) EventType() string { return "tool.requested" }

// ToolStarted records that a tool is about to run.
type ToolStarted struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// OnUnknown is that of the tool. Empty: the call is a child.
	OnUnknown OnUnknown `json:"on_unknown,omitempty"`
	// Key is the idempotency key of the call, the same in every attempt.
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
	// Arguments are the arguments of the run. Empty: they are the model's.
	Arguments string `json:"arguments,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Dry reports whether the tool is not called, because the agent is a fork or import whose tools
	// are dry.
	Dry bool `json:"dry,omitempty"`
}

// EventType returns "tool.started".
func (ToolStarted) EventType() string { return "tool.started" }

// ToolCompleted holds the result of a call.
type ToolCompleted struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	// Output is the result, as the model reads it.
	Output string `json:"output"`
	// By is `decision` or `reconcile`. Empty: the run of the tool had this result.
	By By `json:"by,omitempty"`
	// Blob is the reference to an output that is too large for a frame. Nil: Output holds it.
	Blob *Blob `json:"blob,omitempty"`
}

// EventType returns "tool.completed".
func (ToolCompleted) EventType() string { return "tool.completed" }

// ToolFailed ends a call without a result. The model reads Message.
type ToolFailed struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	// Kind is why it failed, as a word to branch on.
	Kind    ToolFailure `json:"kind"`
	Message string      `json:"message"`
	// By is `decision` or `reconcile`. Empty: the run of the tool failed.
	By By `json:"by,omitempty"`
}

// EventType returns "tool.failed".
func (ToolFailed) EventType() string { return "tool.failed" }

// ToolSkipped ends a call that did not run, because of a hook or because the turn ended.
type ToolSkipped struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Reason string `json:"reason"`
}

// EventType returns "tool.skipped".
func (ToolSkipped) EventType() string { return "tool.skipped" }

// ToolUnknown records that it is unknown whether a call had its effect, because its process was lost
// while it ran. A person must decide.
type ToolUnknown struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Reason string `json:"reason"`
}

// EventType returns "tool.unknown".
func (ToolUnknown) EventType() string { return "tool.unknown" }

// ToolDenied ends a call that was not approved. The model reads Message.
type ToolDenied struct {
	Turn    TurnID `json:"turn"`
	Call    CallID `json:"call"`
	Message string `json:"message"`
}

// EventType returns "tool.denied".
func (ToolDenied) EventType() string { return "tool.denied" }

// ToolFlagged records that a call repeats an earlier call of the turn, of a tool that does
// not only read.
type ToolFlagged struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// Of is the earlier call.
	Of     CallID `json:"of"`
	Reason string `json:"reason"`
}

// EventType returns "tool.flagged".
func (ToolFlagged) EventType() string { return "tool.flagged" }

// ApprovalRequested records that a call waits for a person's approval.
type ApprovalRequested struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// Arguments are those that the call would run with.
	Arguments string `json:"arguments"`
	// ArgsHash is the SHA-256 of Arguments, in hex. A decision that names another hash is refused.
	ArgsHash string `json:"args_hash"`
	Reason   string `json:"reason,omitempty"`
	// ExpiresAt is when the call is denied without a decision. Nil: never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// EventType returns "approval.requested".
func (ApprovalRequested) EventType() string { return "approval.requested" }

// ApprovalGranted records that a call may run.
type ApprovalGranted struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// By is `decision` or `remembered`.
	By By `json:"by"`
	// Remember reports whether the decision applies to later calls of the tool, too.
	Remember bool   `json:"remember,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// EventType returns "approval.granted".
func (ApprovalGranted) EventType() string { return "approval.granted" }

// ApprovalDenied records that a call must not run. A tool.denied follows.
type ApprovalDenied struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// By is `decision`, `remembered` or `timeout`.
	By By `json:"by"`
	// Text is what the model reads instead of a result.
	Text string `json:"text"`
	// Remember reports whether the decision applies to later calls of the tool, too.
	Remember bool   `json:"remember,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// EventType returns "approval.denied".
func (ApprovalDenied) EventType() string { return "approval.denied" }

// ApprovalForgotten removes the remembered decision about a tool: its calls need approval
// again.
type ApprovalForgotten struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "approval.forgotten".
func (ApprovalForgotten) EventType() string { return "approval.forgotten" }
