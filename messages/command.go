package messages

import (
	"encoding/json"
	"time"
)

// Command is a request to an agent. It may be refused. Within the agent's deduplication
// window the same id has its effect once.
type Command interface {
	// CommandType returns the "type" of its body. Each type has one entry in commandTable.
	CommandType() string
}

// Policy is how a busy agent handles an input.
type Policy string

// The policies. The zero value is PolicyQueue.
const (
	PolicyQueue     Policy = "queue"     // it has a turn of its own, after the inputs before it
	PolicySteer     Policy = "steer"     // the running turn sees it before its next model call
	PolicyInterrupt Policy = "interrupt" // the running turn is interrupted, and its own begins at once
	PolicyReject    Policy = "reject"    // it is refused if a turn runs
)

// Policies returns all policies.
func Policies() []Policy { return []Policy{PolicyQueue, PolicySteer, PolicyInterrupt, PolicyReject} }

// Input is a message for an agent: it becomes a turn, or steers one.
type Input struct {
	ID string `json:"id"`
	// Policy is how a busy agent handles it. Empty: `queue`.
	Policy Policy `json:"policy,omitempty"`
	// Content is what the model reads: a text, or a list of parts.
	Content Content `json:"content,omitempty"`
	// Metadata is any JSON. It is stored as it came, and no model sees it.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Deadline is the time until which the input must be accepted. Afterwards it is refused. Nil:
	// none.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Reply is a subject for acceptance and outcome. Empty: none.
	Reply string `json:"reply,omitempty"`
	// Options override the definition for the turn that the input starts.
	Options InputOptions `json:"options,omitzero"`
	// Schedule is when the input is accepted. Zero: at once.
	Schedule `json:",inline"`
}

// CommandType returns "input".
func (Input) CommandType() string { return "input" }

// InputOptions override the definition for the turn that the input starts. They have no
// effect on an input that steers another turn. Zero values leave the definition's.
type InputOptions struct {
	// MaxSteps is the most model calls of the turn. An input that sets more than the definition is
	// refused. 0: that of the definition.
	MaxSteps int `json:"max_steps,omitempty"`
	// ToolChoice is `auto`, `required`, `none`, or the name of a tool, until a tool was used. If the
	// definition forces one, an input that sets another is refused.
	ToolChoice string `json:"tool_choice,omitempty"`
}

// Interrupt cancels the running turn and leaves a note that the model sees.
type Interrupt struct {
	ID string `json:"id"`
	// Turn is the turn to interrupt. Empty: the one that runs when the command is
	// accepted.
	Turn   TurnID `json:"turn,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "interrupt".
func (Interrupt) CommandType() string { return "interrupt" }

// Abort cancels the running turn without a note.
type Abort struct {
	ID string `json:"id"`
	// Turn is the turn to abort. Empty: the one that runs when the command is accepted.
	Turn   TurnID `json:"turn,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "abort".
func (Abort) CommandType() string { return "abort" }

// Clear aborts the running turn, drops the queue and the timers, and resets history, state and
// remembered decisions to those of a new agent. The log keeps what happened.
type Clear struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "clear".
func (Clear) CommandType() string { return "clear" }

// Cancel takes back what has not run. Exactly one of Input, Timer and All is set.
type Cancel struct {
	ID string `json:"id"`
	// Input is the id of an input that waits in the queue, or that is to steer the running turn and
	// that no model has seen.
	Input string `json:"input,omitempty"`
	// Timer is the name of a timer of a scheduled input, or the id of that input.
	Timer string `json:"timer,omitempty"`
	// All takes back every such input and every such timer.
	All    bool   `json:"all,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "cancel".
func (Cancel) CommandType() string { return "cancel" }

// Resume resumes a paused turn, or continues a failed one in a new turn.
type Resume struct {
	ID string `json:"id"`
	// Turn is the turn to resume. Empty: the newest.
	Turn TurnID `json:"turn,omitempty"`
	// LimitOverrides are new limits for the turn.
	LimitOverrides `json:",inline"`
	// AgentLimits are new limits for the agent, which override its definition from now on.
	AgentLimits LimitOverrides `json:"agent_limits,omitzero"`
	Reason      string         `json:"reason,omitempty"`
}

// CommandType returns "resume".
func (Resume) CommandType() string { return "resume" }

// Forwarded is what a decision has that an ancestor of the agent forwards. Other senders may not
// set it. The zero value is that of a decision that comes from outside.
type Forwarded struct {
	// For is the full address of the ancestor. Only agents may set it.
	For string `json:"for,omitempty"`
	// Person is the person who decided. Only agents may set it: others send the header
	// `Reprise-Person`.
	Person *Person `json:"person,omitempty"`
}

// Approve allows a call that waits for approval to run.
type Approve struct {
	ID string `json:"id"`
	// Call is the id of the call.
	Call CallID `json:"call"`
	// Turn is the turn of the call: models may reuse a call id in another turn. Empty:
	// the turn that runs.
	Turn TurnID `json:"turn,omitempty"`
	// ArgsHash is the hash of the arguments that the person has seen, as approval.requested has it.
	// The command is refused if they have changed. Empty: not checked.
	ArgsHash string `json:"args_hash,omitempty"`
	// Remember applies the approval to later calls of the tool by this agent that need approval,
	// whatever their arguments, until a `forget`, a `clear` or another remembered decision. A call
	// that waits because of a hook or `approve_repeats` still waits.
	Remember  bool   `json:"remember,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Forwarded `json:",inline"`
}

// CommandType returns "approve".
func (Approve) CommandType() string { return "approve" }

// Deny ends a call that waits for approval, with a text instead of a result.
type Deny struct {
	ID string `json:"id"`
	// Call is the id of the call.
	Call CallID `json:"call"`
	// Turn is the turn of the call: models may reuse a call id in another turn. Empty:
	// the turn that runs.
	Turn TurnID `json:"turn,omitempty"`
	// ArgsHash is the hash of the arguments that the person has seen, as approval.requested has it.
	// The command is refused if they have changed. Empty: not checked.
	ArgsHash string `json:"args_hash,omitempty"`
	// Text is what the model reads, at most 8 KiB. Nil: "The user denied this call; it was not run."
	Text *string `json:"text,omitempty"`
	// Remember applies the denial, with its text, to later calls of the tool by this agent that need
	// approval, whatever their arguments, until a `forget`, a `clear` or another remembered decision.
	Remember  bool   `json:"remember,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Forwarded `json:",inline"`
}

// CommandType returns "deny".
func (Deny) CommandType() string { return "deny" }

// DeniedText is what the model reads of a denial without a text.
const DeniedText = "The user denied this call; it was not run."

// Forget drops the remembered decision about a tool: its calls need approval again.
type Forget struct {
	ID string `json:"id"`
	// Tool is the name of the tool.
	Tool   string `json:"tool"`
	Reason string `json:"reason,omitempty"`
}

// CommandType returns "forget".
func (Forget) CommandType() string { return "forget" }

// Outcome is the outcome of a call, as a person decides it.
type Outcome string

// The outcomes of Decide.
const (
	OutcomeCompleted Outcome = "completed" // the call had its effect; the model reads the result
	OutcomeFailed    Outcome = "failed"    // the call failed; the model reads the result as the reason
	OutcomeRetry     Outcome = "retry"     // the call runs again, with the same idempotency key
)

// Decide sets the outcome of a call whose outcome is unknown.
type Decide struct {
	ID string `json:"id"`
	// Call is the id of the call.
	Call CallID `json:"call"`
	// Turn is the turn of the call: models may reuse a call id in another turn. Empty:
	// the turn that runs.
	Turn TurnID `json:"turn,omitempty"`
	// Outcome is what became of the call.
	Outcome Outcome `json:"outcome"`
	// Result is what the model reads as the result of a completed call, or as the error of a failed
	// one. Empty: an empty result, or the error "it failed". A retry ignores it.
	Result    string `json:"result,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Forwarded `json:",inline"`
}

// CommandType returns "decide".
func (Decide) CommandType() string { return "decide" }

// SetState changes the agent's state by a JSON merge patch (RFC 7396).
type SetState struct {
	ID string `json:"id"`
	// Patch is the merge patch, a JSON object. It is required.
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// CommandType returns "set_state".
func (SetState) CommandType() string { return "set_state" }
