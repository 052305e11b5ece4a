package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// State is an agent as of its newest event. The zero value is an agent that
// nothing has happened to. Not safe for concurrent use.
type State struct {
	// Last is the number of the newest event; 0 before the first.
	Last messages.EventNumber
	// Definition is the hash that the agent was last configured with.
	Definition string
	// Turn is the running or paused turn; nil when idle.
	Turn *Turn
	// Ended is the newest turn that ended; nil before the first.
	Ended *Ended
	// Queue holds accepted inputs whose turn has not begun, oldest first.
	Queue   []Queued
	History projections.History
	Data    projections.State

	spent recent
	// lost holds running calls of class check whose process is gone and whose
	// tool is being asked what became of them. Volatile: set by Recover.
	lost map[messages.CallID]bool
}

// Turn is a turn that has not ended.
type Turn struct {
	ID       messages.TurnID
	Inputs   []string
	MaxSteps int
	// Steps is how many model calls the turn has made, retries not counted,
	// those of the turns it continues included.
	Steps  int
	Usage  messages.Usage
	Paused bool
	// Model is the call that is awaited or waits for its next attempt.
	Model *ModelCall
	// Calls are the tool calls of the newest step, in the model's order.
	Calls []ToolCall

	used []messages.CallID // ids of all tool calls of the turn
}

// ModelCall is a model call without an answer.
type ModelCall struct {
	ID      messages.CallID
	Attempt int
	// Failures and Restarts count the attempts that failed and those that were
	// lost with their process.
	Failures, Restarts int
	// RetryAt is when the next attempt begins. Zero: one is under way.
	RetryAt time.Time
}

// Status is how far a tool call is.
type Status int

// The statuses, in the order a call may take them.
const (
	Requested Status = iota // waits for a slot
	Executing               // its tool runs, or did when its process died
	Unknown                 // only a person can tell
	Settled                 // has a result
)

// ToolCall is a call of the newest step.
type ToolCall struct {
	ID        messages.CallID
	Tool      string
	Arguments string
	Class     string
	Key       string
	Attempt   int
	Status    Status
}

// Ended is a turn that ended.
type Ended struct {
	ID messages.TurnID
	// Failed says that the turn can be resumed.
	Failed bool
	// Reason is why it failed or was aborted.
	Reason   string
	Steps    int
	MaxSteps int
}

// Queued is an accepted input that waits for its turn.
type Queued struct {
	ID      string
	N       messages.EventNumber // of its input.accepted
	Options messages.InputOptions
}

// Definition is what the machine must know of the agent's definition.
type Definition struct {
	Digest       string
	Model        string
	Instructions string // hash of the rendered text
	MaxSteps     int
	MaxQueue     int
	MaxAttempts  int
	Parallel     int
	// Classes holds the class of every tool, by name.
	Classes map[string]string
}

// Env is everything outside the state that a decision may depend on.
type Env struct {
	Agent      messages.AgentID
	Definition Definition
	Now        time.Time
	// Jitter, from 0 up to 1, spreads retries.
	Jitter float64
}

// Spent says whether a command with this id was applied among the newest ones,
// and at which event. Older ids are the shell's to remember: Spend gives them back.
func (s *State) Spent(id string) (messages.EventNumber, bool) { return s.spent.find(id) }

// recentIDs is how many spent ids a state keeps. A redelivery is nearly always
// of one of them; older ones are found in the shell's index.
const recentIDs = 64

// SpentID is a command id and the event that tells of it.
type SpentID struct {
	ID string
	N  messages.EventNumber
}

// recent is a short list of spent ids, oldest first.
type recent []SpentID

func (r recent) find(id string) (messages.EventNumber, bool) {
	for i := len(r) - 1; i >= 0; i-- {
		if r[i].ID == id {
			return r[i].N, true
		}
	}
	return 0, false
}

// add remembers id, and gives back the oldest if that makes it one too many.
func (r *recent) add(id SpentID) (evicted SpentID) {
	if len(*r) == recentIDs {
		evicted = (*r)[0]
		copy(*r, (*r)[1:])
		*r = (*r)[:recentIDs-1]
	}
	*r = append(*r, id)
	return evicted
}

// SpentBy gives the command id that a frame spent and the event that tells of
// it: for an input its input.accepted, else the frame's first.
func SpentBy(f *messages.Frame) (id SpentID, ok bool) {
	if f.Cause.Door == "" || f.Cause.ID == "" {
		return SpentID{}, false
	}
	for i, ev := range f.Events {
		if _, is := ev.(messages.InputAccepted); is {
			return SpentID{f.Cause.ID, f.First + messages.EventNumber(i)}, true
		}
	}
	return SpentID{f.Cause.ID, f.First}, true
}
