package messages

import (
	"encoding/json"
	"time"
)

// Event is a fact about an agent. It cannot be refused.
//
// Types are past tense and dotted. Fields may be added and never change their meaning; a
// new meaning is a new schema version with an upcaster.
type Event interface {
	// EventType returns the dotted name, such as "turn.started".
	EventType() string
}

// Disposition is how an input was accepted.
type Disposition string

// The dispositions.
const (
	Started Disposition = "started" // its turn starts at once
	Queued  Disposition = "queued"  // it waits for the turns before it
	Steered Disposition = "steered" // it enters the running turn
)

// AgentCreated is an agent's first event. It repeats the address, so that a log copied to
// another subject is detected.
type AgentCreated struct {
	Agent string `json:"agent"`
	// By is the endpoint of the first input.
	By string `json:"by,omitempty"`
	// Parent is the full address of its parent. Empty: none.
	Parent string `json:"parent,omitempty"`
}

// EventType returns "agent.created".
func (AgentCreated) EventType() string { return "agent.created" }

// AgentConfigured records that the agent follows another definition from this event on.
type AgentConfigured struct {
	Definition string `json:"definition"` // SHA-256 of the stored definition, hex
	Model      string `json:"model"`
	Reason     string `json:"reason,omitempty"`
}

// EventType returns "agent.configured".
func (AgentConfigured) EventType() string { return "agent.configured" }

// AgentActivated records that a new owner has taken over. Frames of a lower epoch after
// this event are invalid.
type AgentActivated struct {
	Epoch    Epoch `json:"epoch"`
	Previous Epoch `json:"previous"`
	// Node is the new owner's id and Host the machine that it runs on.
	Node string `json:"node,omitempty"`
	Host string `json:"host,omitempty"`
}

// EventType returns "agent.activated".
func (AgentActivated) EventType() string { return "agent.activated" }

// InputAccepted records that the agent has accepted an input, which will end with exactly
// one terminal event.
type InputAccepted struct {
	Input       string          `json:"input"`
	Disposition Disposition     `json:"disposition"`
	Turn        TurnID          `json:"turn,omitempty"` // of a started or steered one
	Policy      Policy          `json:"policy,omitempty"`
	Content     Content         `json:"content"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Deadline    *time.Time      `json:"deadline,omitempty"`
	Reply       string          `json:"reply,omitempty"`
	Options     InputOptions    `json:"options,omitzero"`
	// Parent is the call of the parent that sent the input. Nil: none.
	Parent *Parent `json:"parent,omitempty"`
}

// EventType returns "input.accepted".
func (InputAccepted) EventType() string { return "input.accepted" }

// InputRequeued records that a steered input, which no model call has seen, leaves its turn
// and waits for one of its own.
type InputRequeued struct {
	Input  string `json:"input"`
	Turn   TurnID `json:"turn"` // that it leaves
	Reason string `json:"reason"`
}

// EventType returns "input.requeued".
func (InputRequeued) EventType() string { return "input.requeued" }

// InputCancelled ends an input that was taken back before any model saw it.
type InputCancelled struct {
	Input  string `json:"input"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "input.cancelled".
func (InputCancelled) EventType() string { return "input.cancelled" }

// InputDropped ends an input that was dropped before any model saw it.
type InputDropped struct {
	Input string `json:"input"`
	// By is the command: clear or delete.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "input.dropped".
func (InputDropped) EventType() string { return "input.dropped" }

// AgentCleared resets history, state and remembered decisions to those of a new agent.
type AgentCleared struct {
	Reason string `json:"reason,omitempty"`
}

// EventType returns "agent.cleared".
func (AgentCleared) EventType() string { return "agent.cleared" }

// CommandNoop records that a command was applied and changed nothing.
type CommandNoop struct {
	Command string `json:"command"`
	Reason  string `json:"reason"`
}

// EventType returns "command.noop".
func (CommandNoop) EventType() string { return "command.noop" }

// HookPoint is where in a turn a hook is called.
type HookPoint string

// The points.
const (
	PointTurnStart   HookPoint = "turn_start"
	PointBeforeModel HookPoint = "before_model"
	PointAfterModel  HookPoint = "after_model"
	PointBeforeTools HookPoint = "before_tools" // about the calls of an answer together
	PointBeforeTool  HookPoint = "before_tool"  // about each call
	PointAfterTool   HookPoint = "after_tool"
	PointTurnEnd     HookPoint = "turn_end"
)

// HookDecided is the decision of a hook.
type HookDecided struct {
	Turn  TurnID    `json:"turn"`
	Step  int       `json:"step,omitempty"`
	Hook  string    `json:"hook"`
	Point HookPoint `json:"point"` // where it was called
	Call  CallID    `json:"call,omitempty"`
	// Decision is continue, rewrite, skip, pause, finish, or failed for a hook that
	// returned an error.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	// Answer is the hook's answer instead of the model's.
	Answer string `json:"answer,omitempty"`
	// Note is what the model reads.
	Note string `json:"note,omitempty"`
	// Arguments are a call's new ones.
	Arguments string `json:"arguments,omitempty"`
}

// EventType returns "hook.decided".
func (HookDecided) EventType() string { return "hook.decided" }

// StatePatched changes the state by a JSON merge patch (RFC 7396).
type StatePatched struct {
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// EventType returns "state.patched".
func (StatePatched) EventType() string { return "state.patched" }
