package messages

import (
	"encoding/json"
	"time"
)

// Command is something asked of an agent from outside. It may be refused. The same id
// has its effect once within the agent's deduplication window.
type Command interface {
	// CommandType is the "type" of its body. Each type has one entry in commandTable.
	CommandType() string
}

// Policy is what an input that meets a busy agent wants.
type Policy string

// The policies. The zero value is PolicyQueue.
const (
	PolicyQueue     Policy = "queue"     // its own turn, after those before it
	PolicySteer     Policy = "steer"     // the running turn sees it before its next model call
	PolicyInterrupt Policy = "interrupt" // the running turn is interrupted, its own begins at once
	PolicyReject    Policy = "reject"    // refused if a turn runs
)

// Policies are the words for Input.Policy.
func Policies() []Policy { return []Policy{PolicyQueue, PolicySteer, PolicyInterrupt, PolicyReject} }

// Input is a message for an agent: it becomes a turn.
type Input struct {
	ID       string          `json:"id"`
	Policy   Policy          `json:"policy,omitempty"`
	Content  Content         `json:"content"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // any JSON, kept as it came
	// Deadline is the caller's own: an input that is accepted no earlier is
	// refused. Nil: none.
	Deadline *time.Time `json:"deadline,omitempty"`
	// Reply is a subject for acceptance and outcome. Empty: none.
	Reply   string       `json:"reply,omitempty"`
	Options InputOptions `json:"options,omitzero"`
	// Schedule makes it come later; zero: at once.
	Schedule
}

// InputOptions differ from the definition for the input's own turn; one that
// steers another's changes nothing there. Zero values leave the definition's.
type InputOptions struct {
	// MaxSteps is at most the definition's.
	MaxSteps int `json:"max_steps,omitempty"`
	// ToolChoice is auto, required, none, or the name of a tool; a definition that
	// forces one stands. It is forced until a tool was used.
	ToolChoice string `json:"tool_choice,omitempty"`
}

// Interrupt cancels the running turn and leaves a note that the model sees.
type Interrupt struct {
	ID string `json:"id"`
	// Turn is the only one to be interrupted; empty means whichever runs when the
	// command is accepted.
	Turn   TurnID `json:"turn,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Abort cancels the running turn without a note.
type Abort struct {
	ID string `json:"id"`
	// Turn is the only one to be aborted; empty means whichever runs when the
	// command is accepted.
	Turn   TurnID `json:"turn,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Clear aborts the running turn, drops the queue and takes history, state and
// remembered decisions back to what they were when the agent was created.
type Clear struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// Cancel takes back what has not run. Exactly one of Input, Timer and All is set.
type Cancel struct {
	ID string `json:"id"`
	// Input is the id of an input that waits and that no model has seen.
	Input string `json:"input,omitempty"`
	// Timer is the name of a timer that would bring an input, or the id of the input
	// that has set it.
	Timer string `json:"timer,omitempty"`
	// All is every such input and every such timer.
	All    bool   `json:"all,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Resume goes on with a paused turn, or continues a failed one in a new turn.
type Resume struct {
	ID string `json:"id"`
	// Turn to resume; empty means the newest.
	Turn TurnID `json:"turn,omitempty"`
	// Raised are new limits for the turn, AgentLimits those for the agent, which
	// hold from now on in place of its definition's.
	Raised
	AgentLimits Raised `json:"agent_limits,omitzero"`
	Reason      string `json:"reason,omitempty"`
}

// Approve lets a call run that waits for approval.
type Approve struct {
	ID   string `json:"id"`
	Call CallID `json:"call"`
	// Turn is the one that the call belongs to: models may use an id again in
	// another. Empty: whichever runs.
	Turn TurnID `json:"turn,omitempty"`
	// ArgsHash is HashArguments of what the person saw. Empty: not checked.
	ArgsHash string `json:"args_hash,omitempty"`
	// Remember lets later calls of the tool run unasked, for this agent.
	Remember bool   `json:"remember,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// For is the full address of the agent above that passes the decision down;
	// nobody else gives it. Empty: it comes from outside.
	For string `json:"for,omitempty"`
	// Person is who decided, where For passes it down. Nil: no one is named.
	Person *Person `json:"person,omitempty"`
}

// Deny gives a call that waits for approval a text instead of a result.
type Deny struct {
	ID   string `json:"id"`
	Call CallID `json:"call"`
	// Turn is the one that the call belongs to: models may use an id again in
	// another. Empty: whichever runs.
	Turn TurnID `json:"turn,omitempty"`
	// ArgsHash is HashArguments of what the person saw. Empty: not checked.
	ArgsHash string `json:"args_hash,omitempty"`
	// Text is what the model reads, at most MaxDenial bytes. Nil: DeniedText.
	Text *string `json:"text,omitempty"`
	// Remember denies later calls of the tool unasked, for this agent.
	Remember bool   `json:"remember,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// For is the full address of the agent above that passes the decision down;
	// nobody else gives it. Empty: it comes from outside.
	For string `json:"for,omitempty"`
	// Person is who decided, where For passes it down. Nil: no one is named.
	Person *Person `json:"person,omitempty"`
}

// DeniedText is what the model reads of a denial without a text.
const DeniedText = "The user denied this call; it was not run."

// Forget drops the remembered decision about a tool: its calls are asked about
// again.
type Forget struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Reason string `json:"reason,omitempty"`
}

// Outcome is what a person says became of a call.
type Outcome string

// The outcomes of Decide.
const (
	OutcomeCompleted Outcome = "completed"
	OutcomeFailed    Outcome = "failed"
	OutcomeRetry     Outcome = "retry"
)

// Decide settles a call whose outcome is unknown.
type Decide struct {
	ID   string `json:"id"`
	Call CallID `json:"call"`
	// Turn is the one that the call belongs to: models may use an id again in
	// another. Empty: whichever runs.
	Turn    TurnID  `json:"turn,omitempty"`
	Outcome Outcome `json:"outcome"`
	Result  string  `json:"result,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	// For is the full address of the agent above that passes the decision down;
	// nobody else gives it. Empty: it comes from outside.
	For string `json:"for,omitempty"`
	// Person is who decided, where For passes it down. Nil: no one is named.
	Person *Person `json:"person,omitempty"`
}

// SetState changes the agent's state by a JSON merge patch (RFC 7396).
type SetState struct {
	ID     string          `json:"id"`
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}
