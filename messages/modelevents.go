package messages

import (
	"encoding/json"
	"time"
)

// ModelRequested records that a model is about to be called. It holds digests and
// references, not the history: the history is the log up to this event.
type ModelRequested struct {
	Turn         TurnID `json:"turn"`
	Step         int    `json:"step"`
	Attempt      int    `json:"attempt"`
	Call         CallID `json:"call"`
	Model        string `json:"model"`
	Definition   string `json:"definition"`
	Instructions string `json:"instructions"` // hash of the rendered text
	Request      string `json:"request"`      // hash of everything sent
	// Inputs are the inputs that this call is the first to include.
	Inputs []string `json:"inputs,omitempty"`
	// ToolChoice is required, none, or the name of a tool. Empty: the model chooses.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Rewritten is what hooks changed of the request, in the form of package actors. It is
	// empty if they changed nothing, or if RewrittenBlob refers to it.
	Rewritten     json.RawMessage `json:"rewritten,omitempty"`
	RewrittenBlob *Blob           `json:"rewritten_blob,omitempty"`
}

// EventType returns "model.requested".
func (ModelRequested) EventType() string { return "model.requested" }

// ModelCompleted holds the answer of a model, every item in order.
type ModelCompleted struct {
	Turn  TurnID `json:"turn"`
	Step  int    `json:"step"`
	Call  CallID `json:"call"`
	Items []Item `json:"items"`
	// Finish is why the answer ended: a Finish constant, or a word of the provider.
	Finish string `json:"finish,omitempty"`
	// Model is the model that answered, as the provider names it.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage"`
	// Cost is the cost by the price table at the time; 0 without one.
	Cost Cost `json:"cost_nanos,omitempty"`
	// Blob is the reference to the text of the items if that is too large for
	// turn.completed. Nil: it is not, or the items refer to it.
	Blob *Blob `json:"blob,omitempty"`
}

// EventType returns "model.completed".
func (ModelCompleted) EventType() string { return "model.completed" }

// Why an answer ended.
const (
	FinishStop    = "stop"
	FinishCalls   = "tool_calls"
	FinishLength  = "length"         // a limit of tokens cut it off
	FinishFilter  = "content_filter" // a filter of the server cut it off
	FinishRefusal = "refusal"        // the model declined
	FinishEmpty   = "empty"          // it has no text and no call
)

// CutOff reports whether an answer that ended for that reason is incomplete, so that the
// arguments of its calls may be.
func CutOff(finish string) bool { return finish == FinishLength || finish == FinishFilter }

// ModelFailed is one failed attempt.
type ModelFailed struct {
	Turn    TurnID       `json:"turn"`
	Step    int          `json:"step"`
	Attempt int          `json:"attempt"`
	Call    CallID       `json:"call"`
	Kind    ModelFailure `json:"kind"`
	Message string       `json:"message"`
	Status  int          `json:"status,omitempty"` // HTTP; 0: none
	// RetryAt is when the next attempt begins. Nil: there is none.
	RetryAt *time.Time `json:"retry_at,omitempty"`
	// Shown reports whether a part of the answer had already been streamed.
	Shown bool  `json:"shown,omitempty"`
	Usage Usage `json:"usage,omitzero"`
	Cost  Cost  `json:"cost_nanos,omitempty"`
}

// EventType returns "model.failed".
func (ModelFailed) EventType() string { return "model.failed" }

// ModelRestarted records that a call was lost with its process and is made again.
type ModelRestarted struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"` // the lost one
	Reason string `json:"reason"`
}

// EventType returns "model.restarted".
func (ModelRestarted) EventType() string { return "model.restarted" }

// ModelSwitched records that the rest of the turn uses another model, because one failed
// permanently.
type ModelSwitched struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// EventType returns "model.switched".
func (ModelSwitched) EventType() string { return "model.switched" }

// BudgetReserved reserves the estimate of what a model call uses.
type BudgetReserved struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Tokens int    `json:"tokens"`
	Cost   Cost   `json:"cost_nanos,omitempty"`
}

// EventType returns "budget.reserved".
func (BudgetReserved) EventType() string { return "budget.reserved" }

// BudgetSettled replaces a reservation by what the call has used.
type BudgetSettled struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"`
	Tokens int    `json:"tokens"`
	Cost   Cost   `json:"cost_nanos,omitempty"`
	// Unknown reports whether the usage is unknown, because the call was lost or given up.
	// The reservation then counts as used.
	Unknown bool `json:"unknown,omitempty"`
}

// EventType returns "budget.settled".
func (BudgetSettled) EventType() string { return "budget.settled" }

// BudgetExhausted records that a limit was exceeded.
type BudgetExhausted struct {
	Turn    TurnID `json:"turn"`
	Scope   Scope  `json:"scope"`
	Limit   Limit  `json:"limit"`
	Message string `json:"message"`
}

// EventType returns "budget.exhausted".
func (BudgetExhausted) EventType() string { return "budget.exhausted" }

// BudgetRaised records new limits set by a person. Zero values leave the old limit.
type BudgetRaised struct {
	Turn   TurnID `json:"turn,omitempty"`
	Scope  Scope  `json:"scope"`
	Limits Limits `json:"limits"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "budget.raised".
func (BudgetRaised) EventType() string { return "budget.raised" }
