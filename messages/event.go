package messages

import (
	"cmp"
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
	Steered Disposition = "steered" // the running turn will see it
)

// OnUnknown is what to do with a tool's call when the node, not the tool, stopped before
// its result was stored. The zero value means Pause.
type OnUnknown string

// What to do. Calls of tools that only read are never flagged for repeating another one.
const (
	ReadOnly  OnUnknown = "read_only" // run it again: the tool only reads
	Rerun     OnUnknown = "rerun"     // run it again with the same idempotency key
	Reconcile OnUnknown = "reconcile" // ask the tool what became of the key
	Pause     OnUnknown = "pause"     // pause the turn until a person decides
)

// AgentCreated is an agent's first event. It repeats the address so that a
// stream copied to another subject is noticed.
type AgentCreated struct {
	Agent string `json:"agent"`
	// By is what brought it to life: the first input's door.
	By string `json:"by,omitempty"`
	// Parent is the full address of the agent that it was made for. Empty: none.
	Parent string `json:"parent,omitempty"`
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
	// Node is the new owner's id and Host the machine that it runs on. Empty: an older
	// version wrote the event.
	Node string `json:"node,omitempty"`
	Host string `json:"host,omitempty"`
}

// InputAccepted says that an input is the agent's from now on and will end
// with exactly one terminal event.
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
	// Parent is the call that the input is the task of. Nil: none.
	Parent *Parent `json:"parent,omitempty"`
}

// InputRequeued is a steered input, which no model call has seen, that leaves its turn and
// waits for one of its own.
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

// InputDropped ends an input that the agent gave up before any model saw it.
type InputDropped struct {
	Input string `json:"input"`
	// By is the command: clear or delete.
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// AgentCleared takes history, state and remembered decisions back to what they
// were when the agent was created.
type AgentCleared struct {
	Reason string `json:"reason,omitempty"`
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
	// Limits are the turn's budget beside MaxSteps.
	Limits Limits `json:"limits,omitzero"`
	// ToolChoice is forced until a tool was used. Empty: the model's own.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Continues is the failed turn this one goes on from, at step Steps.
	Continues TurnID `json:"continues,omitempty"`
	Steps     int    `json:"steps,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// TurnPaused says that the turn waits for a person.
type TurnPaused struct {
	Turn TurnID `json:"turn"`
	// Reason is a word to branch on: approval, tool_unknown, hook, child for one
	// that waits for a person, or the limit that was reached.
	Reason  string   `json:"reason"`
	Calls   []CallID `json:"calls,omitempty"`
	Message string   `json:"message,omitempty"`
}

// TurnResumed says that a paused turn goes on.
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
	// Finish is why the model's last answer ended, unless by itself: length,
	// content_filter, refusal, empty, or a word of its provider.
	Finish string `json:"finish,omitempty"`
	// Blob holds the output where it is too large for a frame. Nil: it is Output.
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
	// Kind and Status are those of the model call that failed, where Reason is model.
	Kind   string `json:"kind,omitempty"`
	Status int    `json:"status,omitempty"`
	// Withheld is the event since which the model is not shown what the turn added, because
	// its server refused that, unless the turn is resumed. Note stands in its place. 0: none.
	Withheld EventNumber `json:"withheld,omitempty"`
	Note     string      `json:"note,omitempty"`
}

// Why is the kind of the model's failure, where there is one, else Reason.
func (e TurnFailed) Why() string { return cmp.Or(e.Kind, e.Reason) }

// TurnAborted ends a turn because somebody asked for it.
type TurnAborted struct {
	Turn   TurnID   `json:"turn"`
	Inputs []string `json:"inputs,omitempty"`
	// By is the command: interrupt, abort, clear, recall of a parent, or input for
	// one whose policy is interrupt.
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
	// ToolChoice is what the model is made to do: required, none, or the name
	// of a tool. Empty: it chooses.
	ToolChoice string `json:"tool_choice,omitempty"`
}

// ModelCompleted holds what a model answered, every item in order.
type ModelCompleted struct {
	Turn  TurnID `json:"turn"`
	Step  int    `json:"step"`
	Call  CallID `json:"call"`
	Items []Item `json:"items"`
	// Finish is why the answer ended: a Finish constant, or a word of the provider.
	Finish string `json:"finish,omitempty"`
	// Model is the one that answered, as the provider named it.
	Model string `json:"model,omitempty"`
	Usage Usage  `json:"usage"`
	// Cost is what the call cost by the price table of the time; 0 without one.
	Cost Cost `json:"cost_nanos,omitempty"`
	// Blob holds the text of the items where it is too large for turn.completed,
	// should this be the turn's answer. Nil: it is not, or the items have it.
	Blob *Blob `json:"blob,omitempty"`
}

// Why an answer ended.
const (
	FinishStop    = "stop"
	FinishCalls   = "tool_calls"
	FinishLength  = "length"         // at a limit of tokens: it is cut off
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
	Status  int    `json:"status,omitempty"` // HTTP, where there was one
	// RetryAt is when the next attempt begins. Nil: there is none.
	RetryAt *time.Time `json:"retry_at,omitempty"`
	// Shown says that a part of the answer had already been streamed.
	Shown bool  `json:"shown,omitempty"`
	Usage Usage `json:"usage,omitzero"`
	Cost  Cost  `json:"cost_nanos,omitempty"`
}

// ModelRestarted says that a call was lost with its process and begins again.
type ModelRestarted struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"` // the lost one
	Reason string `json:"reason"`
}

// ModelSwitched says that the rest of the turn asks another model, because one
// failed for good.
type ModelSwitched struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	From   string `json:"from"`
	To     string `json:"to"`
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
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// OnUnknown is its tool's. Empty: the call is the task of a child.
	OnUnknown OnUnknown `json:"on_unknown,omitempty"`
	Key       string    `json:"key"` // idempotency key, the same in every attempt
	Attempt   int       `json:"attempt"`
	// Arguments are those it runs with where they are not the model's own.
	Arguments string `json:"arguments,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// ToolCompleted holds a call's result.
type ToolCompleted struct {
	Turn   TurnID `json:"turn"`
	Call   CallID `json:"call"`
	Output string `json:"output"`
	// By is who said so when it was not the tool's run: decision for a person,
	// reconcile for the tool when it was asked.
	By string `json:"by,omitempty"`
	// Blob holds the output where it is too large for a frame. Nil: it is Output.
	Blob *Blob `json:"blob,omitempty"`
}

// ToolFailed says why a call has no result; the model reads Message.
type ToolFailed struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	// Kind is a word to branch on: error, panic, timeout, unknown_tool, bad_arguments,
	// not_allowed, interrupted, too_large, no_memory, unknown, restarts, hook, cut_off for a call
	// of an answer that is incomplete, child for one that has ended without an answer, limit for
	// one too many.
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

// ToolDenied says that a call was not approved; the model reads Message.
type ToolDenied struct {
	Turn    TurnID `json:"turn"`
	Call    CallID `json:"call"`
	Message string `json:"message"`
}

// ToolFlagged is a call whose repeat may hurt and that asks for what another call of the
// turn has done, or may have done, or is about to do.
type ToolFlagged struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// Of is the earlier call.
	Of     CallID `json:"of"`
	Reason string `json:"reason"`
}

// ApprovalRequested says that a call waits for a person's approval.
type ApprovalRequested struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// Arguments are those it would run with, ArgsHash their HashArguments: a
	// decision that names another hash is refused.
	Arguments string `json:"arguments"`
	ArgsHash  string `json:"args_hash"`
	Reason    string `json:"reason,omitempty"`
	// ExpiresAt is when the call is denied without a decision. Nil: never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// ApprovalGranted says that a call may run.
type ApprovalGranted struct {
	Turn TurnID `json:"turn"`
	Call CallID `json:"call"`
	Tool string `json:"tool"`
	// By is decision, or remembered for an earlier one.
	By string `json:"by"`
	// Remember says that the decision holds for later calls of the tool.
	Remember bool   `json:"remember,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// ApprovalDenied says that a call must not run.
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

// ApprovalForgotten says that calls of the tool are asked about again.
type ApprovalForgotten struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason,omitempty"`
}

// BudgetReserved sets aside what a model call is expected to use.
type BudgetReserved struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Tokens int    `json:"tokens"`
	Cost   Cost   `json:"cost_nanos,omitempty"`
}

// BudgetSettled replaces a reservation by what the call used.
type BudgetSettled struct {
	Turn   TurnID `json:"turn"`
	Step   int    `json:"step"`
	Call   CallID `json:"call"`
	Tokens int    `json:"tokens"`
	Cost   Cost   `json:"cost_nanos,omitempty"`
	// Unknown says that the call was lost or given up: what it used is not
	// known, and the reservation counts as used.
	Unknown bool `json:"unknown,omitempty"`
}

// BudgetExhausted says that a limit was reached.
type BudgetExhausted struct {
	Turn TurnID `json:"turn"`
	// Scope is turn or agent, Limit max_steps, max_tokens, max_cost or
	// max_duration.
	Scope   string `json:"scope"`
	Limit   string `json:"limit"`
	Message string `json:"message"`
}

// BudgetRaised says that a person set new limits. Zero values are as before.
type BudgetRaised struct {
	Turn TurnID `json:"turn,omitempty"`
	// Scope is turn or agent.
	Scope  string `json:"scope"`
	Limits Limits `json:"limits"`
	Reason string `json:"reason,omitempty"`
}

// TimerSet says that something is to happen at a time, also after a restart.
type TimerSet struct {
	// Turn is the one that it belongs to. Empty: it is the agent's own.
	Turn  TurnID `json:"turn"`
	Timer string `json:"timer"` // unique among those of the turn, or of the agent
	// For is what it is for: retry, approval or duration of a turn, input of the
	// agent.
	For  string    `json:"for"`
	Call CallID    `json:"call,omitempty"`
	Set  time.Time `json:"set"` // when it was set
	At   time.Time `json:"at"`
	// Input is what the timer brings. Nil: a timer with a cron line is set again
	// and brings the same.
	Input *TimedInput `json:"input,omitempty"`
	// Cron is when it comes again, in the time zone Zone. Empty: never.
	Cron string `json:"cron,omitempty"`
	Zone string `json:"tz,omitempty"`
}

// TimerFired says that a timer's time has come.
type TimerFired struct {
	Turn  TurnID `json:"turn"`
	Timer string `json:"timer"`
	// Ran is how long it had run, in milliseconds.
	Ran int64 `json:"ran_ms"`
	// Input is the id of the input that it brings.
	Input string `json:"input,omitempty"`
	// Missed is how many later times of its cron line have passed, too: it fires
	// once for all of them. It is counted up to 1000.
	Missed int `json:"missed,omitempty"`
	// Refused is why the input was not accepted. Empty: it was.
	Refused string `json:"refused,omitempty"`
	// Reply is the subject that is told so. Empty: none.
	Reply string `json:"reply,omitempty"`
}

// TimerCancelled says that a timer will not fire.
type TimerCancelled struct {
	Turn  TurnID `json:"turn"`
	Timer string `json:"timer"`
	// Ran is how long it had run, in milliseconds.
	Ran int64 `json:"ran_ms"`
	// By is what has taken an agent's timer back: cancel, clear, delete, or cron for a
	// line that has no next time.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Input is the input that had set it, Reply the subject that is told. Empty:
	// none.
	Input string `json:"input,omitempty"`
	Reply string `json:"reply,omitempty"`
}

// HookDecided is what a hook wanted, with its reason.
type HookDecided struct {
	Turn TurnID `json:"turn"`
	Step int    `json:"step,omitempty"`
	Hook string `json:"hook"`
	// Point is where it was asked: turn_start, before_model, after_model,
	// before_tools, before_tool, after_tool, turn_end.
	Point string `json:"point"`
	Call  CallID `json:"call,omitempty"`
	// Decision is continue, rewrite, skip, pause, finish, or failed for a hook
	// that broke.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	// Answer is what the hook says in the model's place.
	Answer string `json:"answer,omitempty"`
	// Note is what the model will read.
	Note string `json:"note,omitempty"`
	// Arguments are a call's new ones.
	Arguments string `json:"arguments,omitempty"`
}

// StatePatched changes the state by a JSON merge patch (RFC 7396).
type StatePatched struct {
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}
