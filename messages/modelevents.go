package messages

import (
	"encoding/json"
	"time"
)

// ModelRequested records that a model is about to be called. It holds digests and
// references, not the history: the history is the log up to this event.
type ModelRequested struct {
	Turn    TurnID `json:"turn"`
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	// Call is the id of the model call.
	Call       CallID `json:"call"`
	Model      string `json:"model"`
	Definition string `json:"definition"`
	// Instructions is the hash of the rendered instructions.
	Instructions string `json:"instructions"`
	// Request is the hash of everything that is sent.
	Request string `json:"request"`
	// Inputs are the inputs that this call is the first to include.
	Inputs []string `json:"inputs,omitempty"`
	// ToolChoice is `required`, `none`, or the name of a tool. Empty: the model chooses.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Rewritten is what hooks changed of the request, in the form of package actors. Empty: they
	// changed nothing, or RewrittenBlob refers to it.
	Rewritten json.RawMessage `json:"rewritten,omitempty"`
	// RewrittenBlob is the reference to a Rewritten that is too large for a frame.
	RewrittenBlob *Blob `json:"rewritten_blob,omitempty"`
}

// EventType returns "model.requested".
func (ModelRequested) EventType() string { return "model.requested" }

// ModelCompleted holds the answer of a model, every item in order.
type ModelCompleted struct {
	Turn TurnID `json:"turn"`
	Step int    `json:"step"`
	Call CallID `json:"call"`
	// Items are the answer: messages, reasoning, refusals and calls.
	Items []Item `json:"items"`
	// Finish is why the answer ended: `stop`, tool_calls, `length`, content_filter, `refusal`, `empty`,
	// or a word of the provider.
	Finish string `json:"finish,omitempty"`
	// Model is the model that answered, as the provider names it.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage"`
	Cost  Cost   `json:"cost_nanos,omitempty"`
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

// ModelFailed records a failed attempt of a model call.
type ModelFailed struct {
	Turn    TurnID `json:"turn"`
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Call    CallID `json:"call"`
	// Kind is why it failed, as a word to branch on.
	Kind    ModelFailure `json:"kind"`
	Message string       `json:"message"`
	// Status is the HTTP status. 0: none.
	Status int `json:"status,omitempty"`
	// RetryAt is when the next attempt begins. Nil: there is none.
	RetryAt *time.Time `json:"retry_at,omitempty"`
	// Shown reports whether a part of the answer had already been streamed.
	Shown bool  `json:"shown,omitempty"`
	Usage Usage `json:"usage,omitzero"`
	Cost  Cost  `json:"cost_nanos,omitempty"`
}

// EventType returns "model.failed".
func (ModelFailed) EventType() string { return "model.failed" }

// ModelRestarted records that a model call was lost with its process and is made again.
type ModelRestarted struct {
	Turn TurnID `json:"turn"`
	Step int    `json:"step"`
	// Call is the lost call.
	Call   CallID `json:"call"`
	Reason string `json:"reason"`
}

// EventType returns "model.restarted".
func (ModelRestarted) EventType() string { return "model.restarted" }

// ModelSwitched records that the rest of the turn uses another model, because one failed
// permanently.
type ModelSwitched struct {
	Turn TurnID `json:"turn"`
	Step int    `json:"step"`
	// From is the model that failed.
	From string `json:"from"`
	// To is the next model of the definition.
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// EventType returns "model.switched".
func (ModelSwitched) EventType() string { return "model.switched" }

// BudgetReserved reserves the estimate of what a model call will use, before the call.
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

// BudgetExhausted records that a limit was exceeded. The turn pauses or fails.
type BudgetExhausted struct {
	Turn TurnID `json:"turn"`
	// Scope is what the limit is about: the turn, or all turns of the agent.
	Scope Scope `json:"scope"`
	// Limit is the limit that was exceeded.
	Limit   Limit  `json:"limit"`
	Message string `json:"message"`
}

// EventType returns "budget.exhausted".
func (BudgetExhausted) EventType() string { return "budget.exhausted" }

// BudgetRaised records new limits that a person has set with a resume.
type BudgetRaised struct {
	Turn TurnID `json:"turn,omitempty"`
	// Scope is what the limits are about: the turn, or all turns of the agent.
	Scope Scope `json:"scope"`
	// Limits are the new limits. Zero values leave the old ones.
	Limits Limits `json:"limits"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "budget.raised".
func (BudgetRaised) EventType() string { return "budget.raised" }
