package turn

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// State is an agent as of its newest event: projections of its events, on which it decides.
// The zero value is an agent that nothing has happened to. Not safe for concurrent use.
type State struct {
	// Last is the number of the newest event; 0 before the first.
	Last messages.EventNumber
	projections.Work
	Life      projections.Life
	History   projections.History
	Data      projections.State
	Decisions projections.Decisions

	processed window
	// asking is the point of the running turn at which hooks are being asked. Empty: none are.
	// Volatile.
	asking Point
	// lost holds running calls with OnUnknown Reconcile whose process is gone and whose
	// tool is being asked what became of them. Volatile: set by Recover.
	lost map[lostCall]bool
}

// lostCall is an attempt of a call.
type lostCall struct {
	turn    messages.TurnID
	call    messages.CallID
	attempt int
}

// isLost reports whether the tool of a running call is asked what became of it.
func (s *State) isLost(c *projections.CallState) bool {
	return s.lost[lostCall{c.Turn, c.ID, c.Attempt}]
}

// Definition is what the machine must know of the agent's definition.
type Definition struct {
	// Unknown reports that there is none here: the agent ends what it does on command, and
	// begins nothing.
	Unknown bool

	Digest string
	Model  string
	// Fallbacks are asked in order when a model has failed and is not tried again.
	Fallbacks    []string
	Instructions string // hash of the rendered text
	MaxSteps     int
	MaxQueue     int
	MaxAttempts  int
	Parallel     int
	// Tools holds every tool, by name.
	Tools map[string]Tool
	// ToolChoice is required, none, or the name of a tool. Empty: the model's.
	ToolChoice string
	// TurnLimits are a turn's beside MaxSteps, AgentLimits those of all turns.
	TurnLimits, AgentLimits messages.Limits
	// PauseAtLimit pauses a turn that reaches a limit; else it fails.
	PauseAtLimit bool
	// Prices are by model, as provider/model.
	Prices map[string]messages.Price
	// Overhead is how many bytes each model call has beside the history, and
	// MaxOutput how many tokens an answer of a model may have. Both are for reservations.
	Overhead  int
	MaxOutput map[string]int
	// ShowAtMost is how many bytes of a blob a model is shown. Zero:
	// projections.DefaultShow.
	ShowAtMost int
	// Compact says when and how a history is compacted.
	Compact Compact
	// Hooks are the points at which hooks must be asked.
	Hooks []Point
}

// HooksAt reports whether hooks must be asked at a point.
func (d *Definition) HooksAt(p Point) bool { return slices.Contains(d.Hooks, p) }

// Compact says when and how a history is compacted. The zero value does not before a model
// has refused a request for its length.
type Compact struct {
	// AtTokens is how large a request may be expected to be. 0: as large as it is.
	AtTokens int
	// Keep is how many of the newest items stay, at least.
	Keep int
	How  string // messages.CompactSummary or CompactWindow
	// Model is the one that is asked for summaries.
	Model string
}

// Tool is what the machine must know of a tool.
type Tool struct {
	// OnUnknown is empty for an agent and never for another tool.
	OnUnknown messages.OnUnknown
	// Approval is always, asked (its review reports which calls), or empty.
	Approval string
	// Repeats wants approval for calls that repeat another one.
	Repeats bool
	// Expiry is when a call without a decision is denied. Zero: never.
	Expiry time.Duration
	// Stop ends the turn with the tool's result.
	Stop bool
	// Child is the kind of agent that does it. Empty: it runs here. Detached says
	// that nobody waits for the answer, MaxChildren how many agents one turn may
	// ask; 0 is messages.MaxChildren.
	Child       string
	Detached    bool
	MaxChildren int
}

// mustEnd reports whether a call of the tool must not be cut off: what became of it would
// have to be found out by its tool, or by a person.
func (t Tool) mustEnd() bool { return t.Child == "" && mustEnd(t.OnUnknown) }

func mustEnd(u messages.OnUnknown) bool { return u == messages.Pause || u == messages.Reconcile }

// MustEnd reports whether a call runs that must not be cut off.
func (s *State) MustEnd() bool {
	if s.Turn == nil {
		return false
	}
	for _, c := range s.Turn.Calls {
		if c.Outcome == projections.CallRunning && c.Child == nil && mustEnd(c.OnUnknown) {
			return true
		}
	}
	return false
}

// Env is everything outside the state that a decision may depend on.
type Env struct {
	Agent      messages.AgentID
	Definition Definition
	// Next is the definition of turns that begin from here on. Nil: Definition.
	Next *Definition
	Now  time.Time
	// Upto is what a tombstone records of the streams beside the log. Nil: a delete ends
	// what runs and waits, and writes no tombstone.
	Upto *messages.Extent
	// Person is who gave the command. Nil: no one is named.
	Person *messages.Person
	// Jitter, from 0 up to 1, spreads retries.
	Jitter float64
	// Leaving reports that the agent is about to go to another owner: calls that must not
	// be cut off are not begun, so that its next owner does, or this one at Continue.
	Leaving bool
}
