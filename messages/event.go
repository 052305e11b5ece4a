package messages

import (
	"encoding/json"
	"time"
)

// Event is something that happened to an agent. It cannot be refused.
//
// Types are past tense and dotted. Fields are added freely and never change
// their meaning; a new meaning is a new schema version with an upcaster.
type Event interface {
	// EventType is the dotted name, such as "turn.started".
	EventType() string
}

// Disposition is what became of an input when it was accepted.
type Disposition string

// The dispositions.
const (
	Started Disposition = "started" // its turn began at once
	Queued  Disposition = "queued"  // it waits for the turns before it
)

// AgentCreated is an agent's first event. It repeats the address so that a
// stream copied to another subject is noticed.
type AgentCreated struct {
	Agent string `json:"agent"`
	// By is what brought it to life: the first input's door.
	By string `json:"by,omitempty"`
}

// AgentConfigured says that the agent follows another definition from here on.
type AgentConfigured struct {
	Definition string `json:"definition"` // SHA-256 of the stored definition, hex
	Model      string `json:"model"`
	Reason     string `json:"reason,omitempty"`
}

// AgentActivated says that a new owner has taken over. From here on every
// frame of a lower epoch is foreign.
type AgentActivated struct {
	Epoch    Epoch `json:"epoch"`
	Previous Epoch `json:"previous"`
}

// InputAccepted says that an input is the agent's from now on and will end
// with exactly one terminal event.
type InputAccepted struct {
	Input       string          `json:"input"`
	Disposition Disposition     `json:"disposition"`
	Turn        TurnID          `json:"turn,omitempty"` // of a started one
	Policy      Policy          `json:"policy,omitempty"`
	Content     Content         `json:"content"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Deadline    *time.Time      `json:"deadline,omitempty"`
	Reply       string          `json:"reply,omitempty"`
	Options     InputOptions    `json:"options,omitzero"`
}

// CommandNoop says that a command was applied and changed nothing.
type CommandNoop struct {
	Command string `json:"command"`
	Reason  string `json:"reason"`
}

// TurnStarted opens a turn.
type TurnStarted struct {
	Turn       TurnID   `json:"turn"`
	Inputs     []string `json:"inputs,omitempty"`
	Definition string   `json:"definition"`
	MaxSteps   int      `json:"max_steps"`
	// Continues is the failed turn this one goes on from, at step Steps.
	Continues TurnID `json:"continues,omitempty"`
	Steps     int    `json:"steps,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// TurnPaused says that the turn waits for a person.
type TurnPaused struct {
	Turn   TurnID   `json:"turn"`
	Reason string   `json:"reason"`
	Calls  []CallID `json:"calls,omitempty"`
}

// TurnResumed says that a paused turn goes on.
type TurnResumed struct {
	Turn     TurnID `json:"turn"`
	MaxSteps int    `json:"max_steps,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// TurnCompleted ends a turn with the model's answer.
type TurnCompleted struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	Output string   `json:"output"`
	Steps  int      `json:"steps"`
	Usage  Usage    `json:"usage"`
}

// TurnFailed ends a turn without an answer.
type TurnFailed struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// Reason is a word to branch on: max_steps, model, definition, too_large.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Steps   int    `json:"steps"`
	Usage   Usage  `json:"usage"`
}

// TurnAborted ends a turn because somebody asked for it.
type TurnAborted struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// By is the command: interrupt or abort.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	// Note is what the model will read about it. Empty: nothing.
	Note  string `json:"note,omitempty"`
	Steps int    `json:"steps"`
	Usage Usage  `json:"usage"`
}

// ModelRequested says that a model is about to be called. It holds digests and
// references, not the history: the history is the stream up to here.
type ModelRequested struct {
	Turn         TurnID `json:"turn"`
	Step         int    `json:"step"`
	Attempt      int    `json:"attempt"`
	Call         CallID `json:"call"`
	Model        string `json:"model"`
	Definition   string `json:"definition"`
	Instructions string `json:"instructions"` // hash of the rendered text
	Request      string `json:"request"`      // hash of everything sent
	// Inputs are those that this call is the first to see.
	Inputs []string `json:"inputs,omitempty"`
}

// ModelCompleted holds what a model answered, every item in order.
type ModelCompleted struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"`
	Items  []Item `json:"items"`
	Finish string `json:"finish,omitempty"`
	// Model is the one that answered, as the provider named it.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage"`
}

// ModelFailed is one failed attempt.
type ModelFailed struct {
	Turn    TurnID `json:"turn"`
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Call    CallID `json:"call"`
	// Kind is a word to branch on, such as rate_limited.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Status  int    `json:"status,omitempty"` // HTTP, where there was one
	// RetryAt is when the next attempt begins. Nil: there is none.
	RetryAt *time.Time `json:"retry_at,omitempty"`
	// Shown says that a part of the answer had already been streamed.
	Shown bool  `json:"shown,omitempty"`
	Usage Usage `json:"usage,omitzero"`
}

// ModelRestarted says that a call was lost with its process and begins again.
type ModelRestarted struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"` // the lost one
	Reason string `json:"reason"`
}

// ToolRequested is a call as the model asked for it.
type ToolRequested struct {
	Turn      TurnID `json:"turn"`
	Step      int    `json:"step"`
	Call      CallID `json:"call"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// ToolStarted says that a tool is about to run.
type ToolStarted struct {
	Turn    TurnID `json:"turn"`
	Call    CallID `json:"call"`
	Tool    string `json:"tool"`
	Class   string `json:"class"`
	Key     string `json:"key"` // idempotency key, the same in every attempt
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason,omitempty"`
}

// ToolCompleted holds a call's result.
type ToolCompleted struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Output string `json:"output"`
	// By is who said so when it was not the tool: a person's decision.
	By string `json:"by,omitempty"`
}

// ToolFailed says why a call has no result; the model reads Message.
type ToolFailed struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	// Kind is a word to branch on: error, panic, timeout, unknown_tool,
	// bad_arguments, interrupted, too_large.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	By      string `json:"by,omitempty"`
}

// ToolSkipped says that a call never ran and never will.
type ToolSkipped struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Reason string `json:"reason"`
}

// ToolUnknown says that a call may or may not have had its effect, and that
// only a person can tell.
type ToolUnknown struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Reason string `json:"reason"`
}

// StatePatched changes the state by a JSON merge patch (RFC 7396).
type StatePatched struct {
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// EventType is "agent.created".
func (AgentCreated) EventType() string { return "agent.created" }

// EventType is "agent.configured".
func (AgentConfigured) EventType() string { return "agent.configured" }

// EventType is "agent.activated".
func (AgentActivated) EventType() string { return "agent.activated" }

// EventType is "input.accepted".
func (InputAccepted) EventType() string { return "input.accepted" }

// EventType is "command.noop".
func (CommandNoop) EventType() string { return "command.noop" }

// EventType is "turn.started".
func (TurnStarted) EventType() string { return "turn.started" }

// EventType is "turn.paused".
func (TurnPaused) EventType() string { return "turn.paused" }

// EventType is "turn.resumed".
func (TurnResumed) EventType() string { return "turn.resumed" }

// EventType is "turn.completed".
func (TurnCompleted) EventType() string { return "turn.completed" }

// EventType is "turn.failed".
func (TurnFailed) EventType() string { return "turn.failed" }

// EventType is "turn.aborted".
func (TurnAborted) EventType() string { return "turn.aborted" }

// EventType is "model.requested".
func (ModelRequested) EventType() string { return "model.requested" }

// EventType is "model.completed".
func (ModelCompleted) EventType() string { return "model.completed" }

// EventType is "model.failed".
func (ModelFailed) EventType() string { return "model.failed" }

// EventType is "model.restarted".
func (ModelRestarted) EventType() string { return "model.restarted" }

// EventType is "tool.requested".
func (ToolRequested) EventType() string { return "tool.requested" }

// EventType is "tool.started".
func (ToolStarted) EventType() string { return "tool.started" }

// EventType is "tool.completed".
func (ToolCompleted) EventType() string { return "tool.completed" }

// EventType is "tool.failed".
func (ToolFailed) EventType() string { return "tool.failed" }

// EventType is "tool.skipped".
func (ToolSkipped) EventType() string { return "tool.skipped" }

// EventType is "tool.unknown".
func (ToolUnknown) EventType() string { return "tool.unknown" }

// EventType is "state.patched".
func (StatePatched) EventType() string { return "state.patched" }
