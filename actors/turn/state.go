package turn

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// State is an agent as of its newest event: the projections of its events that it decides on. The
// zero value is an agent without events. Not safe for concurrent use.
type State struct {
	// Last is the number of the newest event; 0 before the first.
	Last messages.EventNumber
	projections.Work
	Life      projections.Life
	Forks     projections.Forks
	History   projections.History
	Data      projections.State
	Decisions projections.Decisions

	processed window
	// asking is the point of the running turn at which hooks are being asked. Empty: none are.
	// Volatile.
	asking Point
	// lost holds running calls with OnUnknown Reconcile whose process was lost and whose tool is
	// asked what became of them. Volatile: set by Recover.
	lost map[lostCall]bool
}

// lostCall is an attempt of a call.
type lostCall struct {
	turn    messages.TurnID
	call    messages.CallID
	attempt int
}

// isLost reports whether the process of a running call was lost and its tool is asked what became
// of it.
func (s *State) isLost(c *projections.CallState) bool {
	return s.lost[lostCall{c.Turn, c.ID, c.Attempt}]
}

// Definition is the part of an agent's definition that decisions depend on. The zero value is that of
// a kind that is not defined here.
type Definition struct {
	// Digest names the definition. Empty: it is not known here.
	Digest string
	Model  string
	// Fallbacks are asked in this order when a model has failed and is not tried again.
	Fallbacks    []string
	Instructions string // hash of the rendered text
	MaxSteps     int
	MaxQueue     int
	MaxAttempts  int
	Parallel     int
	// Tools holds every tool, by name.
	Tools map[string]Tool
	// ToolChoice is required, none, or the name of a tool. Empty: the model chooses.
	ToolChoice string
	// TurnLimits are a turn's beside MaxSteps, AgentLimits those of all turns.
	TurnLimits, AgentLimits messages.Limits
	// PauseAtLimit reports whether a turn that reaches a limit is paused. If not, it fails.
	PauseAtLimit bool
	// Prices are by model, as provider/model.
	Prices map[string]messages.Price
	// Overhead is how many bytes each model call has beside the history, and
	// MaxOutput how many tokens an answer of each model may have. Both are for reservations.
	Overhead  int
	MaxOutput map[string]int
	// ShowAtMost is how many bytes of a blob a model is shown. Zero:
	// projections.DefaultShow.
	ShowAtMost int
	Compact    Compact
	// Hooks are the points at which hooks must be asked.
	Hooks []Point
}

// Unknown reports whether the definition is not known here: the agent ends what it does on command,
// and begins nothing.
func (d *Definition) Unknown() bool { return d.Digest == "" }

// HooksAt reports whether hooks must be asked at a point.
func (d *Definition) HooksAt(p Point) bool { return slices.Contains(d.Hooks, p) }

// Compact is when and how a history is compacted. The zero value compacts it after a model has
// refused a request for its length.
type Compact struct {
	// AtTokens is how large a request may be expected to be. 0: no limit.
	AtTokens int
	// Keep is how many of the newest items to keep at least. 0: DefaultKeep.
	Keep int
	How  string // messages.CompactSummary or CompactWindow
	// Model is the one that is asked for summaries.
	Model string
}

// Tool is the part of a tool's definition that decisions depend on.
type Tool struct {
	// OnUnknown is empty for an agent and never for another tool.
	OnUnknown messages.OnUnknown
	// Approval is which calls require approval.
	Approval Approval
	// Repeats reports whether a call that repeats another one requires approval.
	Repeats bool
	// Expiry is after what time a call without a decision is denied. Zero: never.
	Expiry time.Duration
	// Stop reports whether the tool's result ends the turn.
	Stop bool
	// Child is the kind of agent that the call is the task of. Empty: the tool runs here.
	Child string
	// Detached reports whether the turn does not wait for the answer of the child.
	Detached bool
	// MaxChildren is how many agents one turn may ask. 0: messages.MaxChildren.
	MaxChildren int
}

// Approval is which calls of a tool require approval.
type Approval string

// The approvals.
const (
	ApproveNone   Approval = ""
	ApproveAlways Approval = "always"
	ApproveAsked  Approval = "asked" // those whose review is not Free
)

// mustEnd reports whether a call of the tool must not be cut off: its tool, or a person, would have
// to find out what became of it.
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
	// what runs and waits, and records no tombstone.
	Upto *messages.Extent
	// Forked is the parent's frame that holds the event behind which a fork begins.
	Forked ForkedFrame
	// Copied is the copy that a fork has made of its prefix. Nil: none was made.
	Copied *messages.Prefix
	// Person is who gave the command. Nil: not named.
	Person *messages.Person
	// Trace is the trace context that the command came with. Empty: none.
	Trace messages.TraceContext
	// Jitter, from 0 up to 1, spreads retries.
	Jitter float64
	// Leaving reports that the agent is about to get another owner: calls that must not be cut
	// off are left to that owner, or to this one at Continue.
	Leaving bool
}
