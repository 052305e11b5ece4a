package messages

import (
	"cmp"
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

// OnUnknown is what to do with a tool's call if the node, not the tool, stopped before its
// result was stored. The zero value means Pause.
type OnUnknown string

// The actions. Calls of tools that only read are never flagged for repeating another one.
const (
	ReadOnly  OnUnknown = "read_only" // run it again: the tool only reads
	Rerun     OnUnknown = "rerun"     // run it again with the same idempotency key
	Reconcile OnUnknown = "reconcile" // ask the tool for the outcome of the key
	Pause     OnUnknown = "pause"     // pause the turn until a person decides
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

// AgentConfigured records that the agent follows another definition from this event on.
type AgentConfigured struct {
	Definition string `json:"definition"` // SHA-256 of the stored definition, hex
	Model      string `json:"model"`
	Reason     string `json:"reason,omitempty"`
}

// AgentActivated records that a new owner has taken over. Frames of a lower epoch after
// this event are invalid.
type AgentActivated struct {
	Epoch    Epoch `json:"epoch"`
	Previous Epoch `json:"previous"`
	// Node is the new owner's id and Host the machine that it runs on.
	Node string `json:"node,omitempty"`
	Host string `json:"host,omitempty"`
}

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

// InputRequeued records that a steered input, which no model call has seen, leaves its turn
// and waits for one of its own.
type InputRequeued struct {
	Input  string `json:"input"`
	Turn   TurnID `json:"turn"` // that it leaves
	Reason string `json:"reason"`
}

// InputCancelled ends an input that was taken back before any model saw it.
type InputCancelled struct {
	Input  string `json:"input"`
	Reason string `json:"reason,omitempty"`
}

// InputDropped ends an input that was dropped before any model saw it.
type InputDropped struct {
	Input string `json:"input"`
	// By is the command: clear or delete.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// AgentCleared resets history, state and remembered decisions to those of a new agent.
type AgentCleared struct {
	Reason string `json:"reason,omitempty"`
}

// CommandNoop records that a command was applied and changed nothing.
type CommandNoop struct {
	Command string `json:"command"`
	Reason  string `json:"reason"`
}

// TurnStarted starts a turn.
type TurnStarted struct {
	Turn       TurnID   `json:"turn"`
	Inputs     []string `json:"inputs,omitempty"`
	Definition string   `json:"definition"`
	MaxSteps   int      `json:"max_steps"`
	// Limits are the turn's limits besides MaxSteps.
	Limits Limits `json:"limits,omitzero"`
	// ToolChoice is forced until a tool was used. Empty: the model chooses.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Continues is the failed turn that this one continues at step Steps.
	Continues TurnID `json:"continues,omitempty"`
	Steps     int    `json:"steps,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// TurnPaused records that the turn waits for a person.
type TurnPaused struct {
	Turn TurnID `json:"turn"`
	// Reason is a word to branch on: approval, tool_unknown, hook, child if a child waits
	// for a person, or the limit that was exceeded.
	Reason  string   `json:"reason"`
	Calls   []CallID `json:"calls,omitempty"`
	Message string   `json:"message,omitempty"`
}

// TurnResumed records that a paused turn continues.
type TurnResumed struct {
	Turn TurnID `json:"turn"`
	// MaxSteps is a new limit; 0: the old one.
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
	// Finish is why the model's last answer ended: length, content_filter, refusal, empty,
	// or a word of its provider. Empty: it was complete.
	Finish string `json:"finish,omitempty"`
	// Blob is the reference to the output if it is too large for a frame. Nil: Output
	// holds it.
	Blob *Blob `json:"blob,omitempty"`
}

// TurnFailed ends a turn without an answer.
type TurnFailed struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// Reason is a word to branch on: max_steps, max_tokens, max_cost,
	// max_duration, model, restarts, hook.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Steps   int    `json:"steps"`
	Usage   Usage  `json:"usage"`
	// Kind and Status are those of the failed model call if Reason is model.
	Kind   string `json:"kind,omitempty"`
	Status int    `json:"status,omitempty"`
	// Withheld is the event from which on the model does not see what the turn added,
	// because the model's server refused it, unless the turn is resumed. The model sees
	// Note instead. 0: none.
	Withheld EventNumber `json:"withheld,omitempty"`
	Note     string      `json:"note,omitempty"`
}

// Why returns the kind of the model's failure if there is one, else Reason.
func (e TurnFailed) Why() string { return cmp.Or(e.Kind, e.Reason) }

// Code returns the code of the refusal that the sender of an input of the turn receives: that of
// the model's failure if it has one, else Internal.
func (e TurnFailed) Code() Code {
	if code := Code("model_" + e.Kind); codes[code].status != 0 {
		return code
	}
	return Internal
}

// TurnAborted ends a turn at the request of a person or parent.
type TurnAborted struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// By is the command: interrupt, abort, clear, cancel_child of a parent, or input if its
	// policy is interrupt.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	// Note is what the model reads about it. Empty: nothing.
	Note  string `json:"note,omitempty"`
	Steps int    `json:"steps"`
	Usage Usage  `json:"usage"`
}

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
}

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
	Turn    TurnID `json:"turn"`
	Step    int    `json:"step"`
	Attempt int    `json:"attempt"`
	Call    CallID `json:"call"`
	// Kind is a word to branch on, such as rate_limit.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Status  int    `json:"status,omitempty"` // HTTP; 0: none
	// RetryAt is when the next attempt begins. Nil: there is none.
	RetryAt *time.Time `json:"retry_at,omitempty"`
	// Shown reports whether a part of the answer had already been streamed.
	Shown bool  `json:"shown,omitempty"`
	Usage Usage `json:"usage,omitzero"`
	Cost  Cost  `json:"cost_nanos,omitempty"`
}

// ModelRestarted records that a call was lost with its process and is made again.
type ModelRestarted struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"` // the lost one
	Reason string `json:"reason"`
}

// ModelSwitched records that the rest of the turn uses another model, because one failed
// permanently.
type ModelSwitched struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason"`
}

// ToolRequested is a call as the model requested it.
type ToolRequested struct {
	Turn      TurnID `json:"turn"`
	Step      int    `json:"step"`
	Call      CallID `json:"call"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// ToolStarted records that a tool is about to run.
type ToolStarted struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// OnUnknown is that of the tool. Empty: the call is a child.
	OnUnknown OnUnknown `json:"on_unknown,omitempty"`
	Key       string    `json:"key"` // idempotency key, the same in every attempt
	Attempt   int       `json:"attempt"`
	// Arguments are the arguments of the run if they differ from the model's.
	Arguments string `json:"arguments,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// ToolCompleted holds a call's result.
type ToolCompleted struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Output string `json:"output"`
	// By is the source of the result if it is not the run of the tool: decision for a
	// person, reconcile for the tool's reconcile function.
	By string `json:"by,omitempty"`
	// Blob is the reference to the output if it is too large for a frame. Nil: Output
	// holds it.
	Blob *Blob `json:"blob,omitempty"`
}

// ToolFailed ends a call without a result. The model reads Message.
type ToolFailed struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	// Kind is a word to branch on: error, panic, timeout, unknown_tool, bad_arguments,
	// not_allowed, interrupted, too_large, no_memory, unknown, restarts, hook, cut_off for a call
	// of an answer that is incomplete, child for a child that has ended without an answer, limit
	// for a call over a limit.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	By      string `json:"by,omitempty"`
}

// ToolSkipped ends a call that did not run.
type ToolSkipped struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Reason string `json:"reason"`
}

// ToolUnknown records that it is unknown whether a call had its effect. A person must
// decide.
type ToolUnknown struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Reason string `json:"reason"`
}

// ToolDenied ends a call that was not approved. The model reads Message.
type ToolDenied struct {
	Turn    TurnID `json:"turn"`
	Call    CallID `json:"call"`
	Message string `json:"message"`
}

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

// ApprovalRequested records that a call waits for a person's approval.
type ApprovalRequested struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// Arguments are those it would run with, ArgsHash is HashArguments of them. A decision
	// that names another hash is refused.
	Arguments string `json:"arguments"`
	ArgsHash  string `json:"args_hash"`
	Reason    string `json:"reason,omitempty"`
	// ExpiresAt is when the call is denied without a decision. Nil: never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// ApprovalGranted records that a call may run.
type ApprovalGranted struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// By is decision, or remembered for an earlier one.
	By string `json:"by"`
	// Remember reports whether the decision applies to later calls of the tool, too.
	Remember bool   `json:"remember,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// ApprovalDenied records that a call must not run.
type ApprovalDenied struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// By is decision, remembered for an earlier one, or timeout.
	By string `json:"by"`
	// Text is what the model reads instead of a result.
	Text     string `json:"text"`
	Remember bool   `json:"remember,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// ApprovalForgotten removes the remembered decision about a tool: its calls need approval
// again.
type ApprovalForgotten struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason,omitempty"`
}

// BudgetReserved reserves the estimate of what a model call uses.
type BudgetReserved struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Tokens int    `json:"tokens"`
	Cost   Cost   `json:"cost_nanos,omitempty"`
}

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

// BudgetExhausted records that a limit was exceeded.
type BudgetExhausted struct {
	Turn TurnID `json:"turn"`
	// Scope is turn or agent, Limit max_steps, max_tokens, max_cost or
	// max_duration.
	Scope   string `json:"scope"`
	Limit   string `json:"limit"`
	Message string `json:"message"`
}

// BudgetRaised records new limits set by a person. Zero values leave the old limit.
type BudgetRaised struct {
	Turn TurnID `json:"turn,omitempty"`
	// Scope is turn or agent.
	Scope  string `json:"scope"`
	Limits Limits `json:"limits"`
	Reason string `json:"reason,omitempty"`
}

// TimerSet sets a timer. It survives restarts.
type TimerSet struct {
	// Turn is the turn that it belongs to. Empty: it belongs to the agent.
	Turn  TurnID `json:"turn"`
	Timer string `json:"timer"` // unique among those of the turn, or of the agent
	// For is the purpose: retry, approval or duration of a turn, input of the agent.
	For  string    `json:"for"`
	Call CallID    `json:"call,omitempty"`
	Set  time.Time `json:"set"` // when it was set
	At   time.Time `json:"at"`
	// Input is the scheduled input without its Schedule. If it is repeated, TimerInputID
	// makes an id each time. Nil: a timer with a cron line is set again for the same input.
	Input *Input `json:"input,omitempty"`
	// Cron is when it is due again, in the time zone Zone. Empty: never.
	Cron string `json:"cron,omitempty"`
	Zone string `json:"tz,omitempty"`
}

// TimerFired records that a timer was due and has fired.
type TimerFired struct {
	Turn  TurnID `json:"turn"`
	Timer string `json:"timer"`
	// Ran is the time since it was set, in milliseconds.
	Ran int64 `json:"ran_ms"`
	// Input is the id of the scheduled input.
	Input string `json:"input,omitempty"`
	// Missed is how many later times of its cron line have passed, too, up to 1000. The
	// timer fires once for all of them.
	Missed int `json:"missed,omitempty"`
	// Refused is why the input was not accepted. Empty: it was.
	Refused string `json:"refused,omitempty"`
	// Reply is the reply subject of the input. Empty: none.
	Reply string `json:"reply,omitempty"`
}

// TimerCancelled records that a timer will not fire.
type TimerCancelled struct {
	Turn  TurnID `json:"turn"`
	Timer string `json:"timer"`
	// Ran is the time since it was set, in milliseconds.
	Ran int64 `json:"ran_ms"`
	// By is what cancelled an agent's timer: cancel, clear, delete, or cron for a line that
	// has no next time.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Input is the input that had set it, Reply the reply subject of the input. Empty:
	// none.
	Input string `json:"input,omitempty"`
	Reply string `json:"reply,omitempty"`
}

// HookDecided is the decision of a hook.
type HookDecided struct {
	Turn TurnID `json:"turn"`
	Step int    `json:"step,omitempty"`
	Hook string `json:"hook"`
	// Point is where it was called: turn_start, before_model, after_model,
	// before_tools, before_tool, after_tool, turn_end.
	Point string `json:"point"`
	Call  CallID `json:"call,omitempty"`
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

// StatePatched changes the state by a JSON merge patch (RFC 7396).
type StatePatched struct {
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}
