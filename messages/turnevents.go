package messages

import "cmp"

// TurnStarted starts a turn. The id of a turn is `t` and the number of this event.
type TurnStarted struct {
	Turn TurnID `json:"turn"`
	// Inputs are the inputs that the turn is for. Empty: it continues a failed one.
	Inputs     []string `json:"inputs,omitempty"`
	Definition string   `json:"definition"`
	// MaxSteps is the most model calls of the turn.
	MaxSteps int `json:"max_steps"`
	// Limits are the turn's limits besides MaxSteps.
	Limits Limits `json:"limits,omitzero"`
	// ToolChoice is the choice of tools that is forced until a tool was used. Empty: the model chooses.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Continues is the failed turn that this one continues at step Steps.
	Continues TurnID `json:"continues,omitempty"`
	// Steps is how many model calls the turns before it have made, if it continues a failed one.
	Steps  int    `json:"steps,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Trace is the W3C trace context of the input. Empty: the turn begins a trace.
	Trace TraceContext `json:"trace,omitempty"`
}

// EventType returns "turn.started".
func (TurnStarted) EventType() string { return "turn.started" }

// TurnPaused records that the turn waits for a person.
type TurnPaused struct {
	Turn TurnID `json:"turn"`
	// Reason is a word to branch on: `approval`, tool_unknown, `hook`, `child` (a child waits for a
	// person), `fork`, `import`, or the name of the limit that was exceeded.
	Reason string `json:"reason"`
	// Calls are the calls that wait.
	Calls   []CallID `json:"calls,omitempty"`
	Message string   `json:"message,omitempty"`
}

// EventType returns "turn.paused".
func (TurnPaused) EventType() string { return "turn.paused" }

// TurnResumed records that a paused turn continues.
type TurnResumed struct {
	Turn TurnID `json:"turn"`
	// MaxSteps is a new limit of model calls. 0: the old one.
	MaxSteps int    `json:"max_steps,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// EventType returns "turn.resumed".
func (TurnResumed) EventType() string { return "turn.resumed" }

// TurnCompleted ends a turn with the model's answer.
type TurnCompleted struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// Output is the answer.
	Output string `json:"output"`
	Steps  int    `json:"steps"`
	Usage  Usage  `json:"usage"`
	// Finish is why the model's last answer ended: `length`, content_filter, `refusal`, `empty`,
	// or a word of its provider. Empty: it was complete.
	Finish string `json:"finish,omitempty"`
	// Blob is the reference to an output that is too large for a frame. Nil: Output holds it.
	Blob *Blob `json:"blob,omitempty"`
}

// EventType returns "turn.completed".
func (TurnCompleted) EventType() string { return "turn.completed" }

// Reasons of a TurnFailed, beside the limits.
const (
	FailedModel    = "model"
	FailedRestarts = "restarts"
	FailedHook     = "hook"
)

// TurnFailed ends a turn without an answer.
type TurnFailed struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// Reason is a word to branch on: max_steps, max_tokens, max_cost, max_duration, `model`,
	// `restarts` or `hook`.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Steps   int    `json:"steps"`
	Usage   Usage  `json:"usage"`
	// Kind is why the last model call failed, if Reason is `model`.
	Kind ModelFailure `json:"kind,omitempty"`
	// Status is the HTTP status of that call. 0: none.
	Status int `json:"status,omitempty"`
	// Withheld is the event from which on the model does not see what the turn added,
	// because the model's server refused it, unless the turn is resumed. 0: none.
	Withheld EventNumber `json:"withheld,omitempty"`
	// Note is what the model sees in place of what is withheld.
	Note string `json:"note,omitempty"`
}

// EventType returns "turn.failed".
func (TurnFailed) EventType() string { return "turn.failed" }

// Why returns the kind of the model's failure if there is one, else Reason.
func (e TurnFailed) Why() string { return cmp.Or(string(e.Kind), e.Reason) }

// Code returns the code of the refusal that the sender of an input of the turn receives: that of
// the model's failure if it has one, else Internal.
func (e TurnFailed) Code() Code { return e.Kind.Code() }

// TurnAborted ends a turn at the request of a person or of the parent.
type TurnAborted struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// By is the command: `interrupt`, `abort`, `clear`, `delete`, cancel_child of a parent, or `input`
	// if its policy is `interrupt`.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	// Note is what the model reads about it. Empty: nothing.
	Note  string `json:"note,omitempty"`
	Steps int    `json:"steps"`
	Usage Usage  `json:"usage"`
}

// EventType returns "turn.aborted".
func (TurnAborted) EventType() string { return "turn.aborted" }
