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

// AgentCreated is an agent's first event. It repeats the address, so that a log that was copied to
// another subject is detected.
type AgentCreated struct {
	// Agent is the full address, `tenant/kind/key`.
	Agent string `json:"agent"`
	// By is the endpoint that received the first input, such as `in` or `prompt`.
	By string `json:"by,omitempty"`
	// Parent is the full address of the agent whose call created this one. Empty: no call did.
	Parent string `json:"parent,omitempty"`
}

// EventType returns "agent.created".
func (AgentCreated) EventType() string { return "agent.created" }

// AgentConfigured records that the agent follows another definition from this event on. It is the
// second event of an agent, and is written again before the first turn that has a new definition.
type AgentConfigured struct {
	Definition string `json:"definition"`
	// Model is the model of the definition, as `provider/model`.
	Model  string `json:"model"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "agent.configured".
func (AgentConfigured) EventType() string { return "agent.configured" }

// AgentActivated records that another node has taken the agent over, in a frame of its own. Frames of
// a lower epoch after this event are invalid.
type AgentActivated struct {
	// Epoch is the epoch of the new owner.
	Epoch Epoch `json:"epoch"`
	// Previous is the epoch of the owner before it.
	Previous Epoch `json:"previous"`
	// Node is the id of the new owner.
	Node string `json:"node,omitempty"`
	// Host is the name of the machine that it runs on.
	Host string `json:"host,omitempty"`
}

// EventType returns "agent.activated".
func (AgentActivated) EventType() string { return "agent.activated" }

// InputAccepted records that the agent has accepted an input. From here on the input is not lost, and
// ends with exactly one terminal event.
type InputAccepted struct {
	Input string `json:"input"`
	// Disposition is what became of the input at once.
	Disposition Disposition `json:"disposition"`
	// Turn is the turn that it started or steered. Empty: it waits.
	Turn TurnID `json:"turn,omitempty"`
	// Policy is that of the input. Empty: `queue`.
	Policy Policy `json:"policy,omitempty"`
	// Content is what the model reads.
	Content Content `json:"content"`
	// Metadata is any JSON that the sender added. No model sees it.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Deadline is the time until which the sender wanted the input accepted. Nil: none.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Reply is the subject that acceptance and outcome are sent to. Empty: none.
	Reply string `json:"reply,omitempty"`
	// Options override the definition for the turn of the input.
	Options InputOptions `json:"options,omitzero"`
	// Parent is the call of the parent that sent the input. Nil: it is no task.
	Parent *Parent `json:"parent,omitempty"`
}

// EventType returns "input.accepted".
func (InputAccepted) EventType() string { return "input.accepted" }

// InputRequeued records that an input that steered a turn leaves it, because the turn ended before a
// model call had seen the input. It waits for a turn of its own.
type InputRequeued struct {
	Input string `json:"input"`
	// Turn is the turn that it leaves.
	Turn   TurnID `json:"turn"`
	Reason string `json:"reason"`
}

// EventType returns "input.requeued".
func (InputRequeued) EventType() string { return "input.requeued" }

// InputCancelled ends an input that a cancel, or the parent, took back before a model saw it.
type InputCancelled struct {
	Input  string `json:"input"`
	Reason string `json:"reason,omitempty"`
}

// EventType returns "input.cancelled".
func (InputCancelled) EventType() string { return "input.cancelled" }

// InputDropped ends an input that a clear, delete, import or fork dropped before a model saw it.
type InputDropped struct {
	Input string `json:"input"`
	// By is the command: `clear`, `delete`, `import` or `begin_fork`.
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
	// Command is the type of the command.
	Command string `json:"command"`
	// Reason is why nothing changed.
	Reason string `json:"reason"`
}

// EventType returns "command.noop".
func (CommandNoop) EventType() string { return "command.noop" }

// HookPoint is where in a turn a hook is called.
type HookPoint string

// The points.
const (
	PointTurnStart   HookPoint = "turn_start"   // a turn has started
	PointBeforeModel HookPoint = "before_model" // a request is about to be sent to a model
	PointAfterModel  HookPoint = "after_model"  // a model has answered
	PointBeforeTools HookPoint = "before_tools" // the calls of an answer, all together, are about to run
	PointBeforeTool  HookPoint = "before_tool"  // a call is about to run
	PointAfterTool   HookPoint = "after_tool"   // a call has a result
	PointTurnEnd     HookPoint = "turn_end"     // a turn is about to end with an answer
)

// HookDecided records the decision of a hook, unless it is to continue without a note.
type HookDecided struct {
	Turn TurnID `json:"turn"`
	Step int    `json:"step,omitempty"`
	// Hook is the name of the hook.
	Hook string `json:"hook"`
	// Point is where the hook was called.
	Point HookPoint `json:"point"`
	// Call is the call that the decision is about. Empty: none.
	Call CallID `json:"call,omitempty"`
	// Decision is `continue`, `rewrite`, `skip`, `pause` or `finish`; `failed` for a hook that
	// returned an error.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	// Answer is the hook's answer, in place of the model's.
	Answer string `json:"answer,omitempty"`
	// Note is what the model reads about the decision.
	Note string `json:"note,omitempty"`
	// Arguments are the new arguments of the call.
	Arguments string `json:"arguments,omitempty"`
}

// EventType returns "hook.decided".
func (HookDecided) EventType() string { return "hook.decided" }

// StatePatched changes the agent's state by a JSON merge patch (RFC 7396).
type StatePatched struct {
	// Patch is the merge patch, a JSON object.
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// EventType returns "state.patched".
func (StatePatched) EventType() string { return "state.patched" }
