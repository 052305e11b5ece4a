package messages

import (
	"encoding/json"
	"time"
)

// Command is something asked of an agent from outside. It may be refused; an
// applied one spends its id for ever.
type Command interface {
	// CommandType is the "type" of its body.
	CommandType() string
	// CommandID is its idempotency key within the agent, never empty once a
	// door has accepted it.
	CommandID() string
}

// Policy is what an input that meets a busy agent wants.
type Policy string

// The policies. The zero value is PolicyQueue.
const (
	PolicyQueue  Policy = "queue"  // its own turn, after those before it
	PolicyReject Policy = "reject" // refused if a turn runs or waits
)

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
}

// InputOptions differ from the definition for one turn only. Zero values
// leave the definition's.
type InputOptions struct {
	MaxSteps int `json:"max_steps,omitempty"`
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

// Resume goes on with a paused turn, or continues a failed one in a new turn.
type Resume struct {
	ID string `json:"id"`
	// Turn to resume; empty means the newest.
	Turn TurnID `json:"turn,omitempty"`
	// MaxSteps is a new limit; zero keeps the old one.
	MaxSteps int    `json:"max_steps,omitempty"`
	Reason   string `json:"reason,omitempty"`
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
	ID      string  `json:"id"`
	Call    CallID  `json:"call"`
	Outcome Outcome `json:"outcome"`
	Result  string  `json:"result,omitempty"`
	Reason  string  `json:"reason,omitempty"`
}

// SetState changes the agent's state by a JSON merge patch (RFC 7396).
type SetState struct {
	ID     string          `json:"id"`
	Patch  json.RawMessage `json:"patch,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

// CommandType is "input".
func (Input) CommandType() string { return "input" }

// CommandType is "interrupt".
func (Interrupt) CommandType() string { return "interrupt" }

// CommandType is "abort".
func (Abort) CommandType() string { return "abort" }

// CommandType is "resume".
func (Resume) CommandType() string { return "resume" }

// CommandType is "decide".
func (Decide) CommandType() string { return "decide" }

// CommandType is "set_state".
func (SetState) CommandType() string { return "set_state" }

// CommandID is the input's idempotency key.
func (c Input) CommandID() string { return c.ID }

// CommandID is the command's idempotency key.
func (c Interrupt) CommandID() string { return c.ID }

// CommandID is the command's idempotency key.
func (c Abort) CommandID() string { return c.ID }

// CommandID is the command's idempotency key.
func (c Resume) CommandID() string { return c.ID }

// CommandID is the command's idempotency key.
func (c Decide) CommandID() string { return c.ID }

// CommandID is the command's idempotency key.
func (c SetState) CommandID() string { return c.ID }

// WithID is the command with this idempotency key.
func WithID(c Command, id string) Command {
	switch c := c.(type) {
	case Input:
		c.ID = id
		return c
	case Interrupt:
		c.ID = id
		return c
	case Abort:
		c.ID = id
		return c
	case Resume:
		c.ID = id
		return c
	case Decide:
		c.ID = id
		return c
	case SetState:
		c.ID = id
		return c
	}
	return c
}

// ReasonOf is the reason that a person gave with a command. Empty: none.
func ReasonOf(c Command) string {
	switch c := c.(type) {
	case Interrupt:
		return c.Reason
	case Abort:
		return c.Reason
	case Resume:
		return c.Reason
	case Decide:
		return c.Reason
	case SetState:
		return c.Reason
	}
	return ""
}
