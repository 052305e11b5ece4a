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
	// Life holds the definition, and how far a deletion is.
	Life projections.Life
	// Turn is the running or paused turn; nil when idle.
	Turn *Turn
	// Ended is the newest turn that ended; nil before the first.
	Ended *Ended
	// Inputs are those that no model has seen.
	Inputs    projections.Inputs
	History   projections.History
	Data      projections.State
	Decisions projections.Decisions
	// Used is what all turns together have used.
	Used Used
	// Raised are limits of the agent that a person has set: they hold in place of
	// the definition's.
	Raised messages.Limits
	// Tasks are the inputs that other agents gave it, Stopping the children that
	// are to end, each until the other side knows.
	Tasks    []Task
	Stopping []Stopping
	// Given are the tasks that came, or were taken back before they came: the newest ones.
	// They are kept after their end, so that a task which is sent again has no second effect.
	Given []GivenTask
	// Passed are decisions that were passed down, each until it is known what became
	// of it.
	Passed []messages.ChildDecided
	Timers projections.Timers
	// Summary is being made of the older part of History; nil: none is.
	Summary *Summary

	// done are the calls, with OnUnknown Pause or Rerun, that the turn, and those it
	// continues, have started and that may have had their effect.
	done      []doneCall
	processed window
	// lost holds running calls with OnUnknown Reconcile whose process is gone and whose
	// tool is being asked what became of them. Volatile: set by Recover.
	lost map[messages.CallID]bool
}

// Turn is a turn that has not ended.
type Turn struct {
	ID messages.TurnID
	// Inputs began the turn, or steered it and were seen by a model. They end with it, and so
	// do those that steer it and were not seen: see State.TurnInputs.
	Inputs []string
	Limits messages.Limits
	// Steps is how many model calls the turn has made, retries not counted,
	// those of the turns it continues included.
	Steps int
	Usage messages.Usage
	// Used counts against Limits, the turns it continues included. Its Steps are
	// not kept: see Turn.Steps.
	Used Used
	// Paused is why it waits for a person, as in turn.paused. Empty: it runs.
	Paused string
	// Model is the call that is awaited or waits for its next attempt.
	Model *ModelCall
	// Calls are the tool calls of the newest step, in the model's order.
	Calls []ToolCall

	called     bool              // a model was asked
	switched   string            // the model that a fallback chose; empty: the definition's
	toolChoice string            // forced until toolUsed
	toolUsed   bool              // a tool was asked for, in an answer that was not cut off
	compacted  bool              // the history was compacted for the next model call, or that was tried
	callIDs    []messages.CallID // ids of all tool calls of the turn and those it continues
	fresh      []string          // inputs that began the turn and no model call has seen
	reserved   *Used             // for the next model call; nil: nothing
	exhausted  string            // the limit that was reached, until it is raised
	reached    string            // and what was said of it
	final      *Output           // the answer, when the model asks for nothing more
	finish     *string           // the answer that a hook ends the turn with
	again      bool              // at the turn's end a hook has asked for another model call, which was not made
	held       string            // why a hook wants a person, until the turn is resumed
	hooked     []string          // hooks that have had their say in this step, as point/name
	callers    []messages.Caller // for whom it works, the root's first
	children   int               // how many it and those it continues have asked
	hook       Point             // where hooks are being asked. Volatile.
}

// Used is what counts against limits.
type Used struct {
	Steps  int
	Tokens int
	Cost   messages.Cost
	Ran    int64 // milliseconds, as far as duration timers have told
}

func (u Used) add(v Used) Used {
	return Used{u.Steps + v.Steps, u.Tokens + v.Tokens, u.Cost.Plus(v.Cost), u.Ran + v.Ran}
}

// ModelCall is a model call without an answer.
type ModelCall struct {
	ID messages.CallID
	// Model is the one that was asked, as provider/model.
	Model   string
	Attempt int
	// ToolChoice is what it is made to do. Empty: it chooses.
	ToolChoice string
	// Failures and Restarts count the attempts that failed and those that were
	// lost with their process.
	Failures, Restarts int
	// Refused is the first failure that was about what the request holds, whichever model of
	// the list it was. The zero value: none was.
	Refused Refusal
	// Shortened reports that the history was compacted because the request was too long.
	Shortened bool
	// RetryAt is when the next attempt begins. Zero: one is under way, or Due.
	RetryAt time.Time
	// Due says that the attempt is over and the next one can begin.
	Due bool

	reserved *Used // nil: nothing, or it is settled
}

// Refusal is a failure, as in model.failed.
type Refusal struct {
	Kind, Message string
	Status        int
}

// underWay says that an answer is awaited.
func (m *ModelCall) underWay() bool { return m.RetryAt.IsZero() && !m.Due }

// Status is how far a tool call is.
type Status int

// The statuses, in the order a call may take them.
const (
	Requested Status = iota // waits for a slot
	Gated                   // waits for approval
	Executing               // its tool runs, or did when its process died
	Unknown                 // only a person can tell
	Settled                 // has a result
)

// ToolCall is a call of the newest step.
type ToolCall struct {
	ID        messages.CallID
	Tool      string
	Arguments string // as it runs; the model's own unless Rewritten
	Rewritten bool
	OnUnknown messages.OnUnknown
	Key       string
	Attempt   int
	Status    Status
	// Decision is granted or denied. Empty: nobody has decided.
	Decision string
	// Completed says that it has a result of its tool's, Output.
	Completed bool
	Output    string
	// Blob holds the output where it is too large for a frame. Nil: it is Output.
	Blob *messages.Blob
	// Child is the agent that the call is the task of. Nil: it runs here.
	Child *ChildCall
}

// Output is what a turn answers: a text, or the blob that holds it.
type Output struct {
	Text string
	// Blob is nil if Text is the answer.
	Blob *messages.Blob
	// Finish is that of turn.completed.
	Finish string
}

// doneCall is a call that may have had its effect.
type doneCall struct {
	id              messages.CallID
	tool, arguments string
}

// Ended is a turn that ended.
type Ended struct {
	ID messages.TurnID
	// Failed says that the turn can be resumed.
	Failed bool
	// Reason is why it failed or was aborted.
	Reason string
	// Refused reports whether a model refused what its last request held.
	Refused bool
	Steps   int
	Limits  messages.Limits
	Used    Used

	repeat     bool // its last step has no answer
	callIDs    []messages.CallID
	toolChoice string
	toolUsed   bool
	callers    []messages.Caller
	children   int
}

// Definition is what the machine must know of the agent's definition.
type Definition struct {
	// Unknown says that there is none here: the agent ends what it does when it is
	// told to, and begins nothing.
	Unknown bool

	Digest string
	Model  string
	// Fallbacks are asked in order when a model fails for good.
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
	// ModelHooks and EndHooks say that hooks must be asked before each model
	// call, and before a turn completes.
	ModelHooks, EndHooks bool
}

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
	// Approval is always, asked (its judgement says which calls), or empty.
	Approval string
	// Repeats wants approval for calls that repeat another one.
	Repeats bool
	// Expiry denies a call that nobody has decided about. Zero: never.
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

// mustEnd says that a call of the tool must not be cut off: what became of it would
// have to be found out by its tool, or by a person.
func (t Tool) mustEnd() bool { return t.Child == "" && mustEnd(t.OnUnknown) }

func mustEnd(u messages.OnUnknown) bool { return u == messages.Pause || u == messages.Reconcile }

// repeatHurts reports whether a second call with the same arguments may have a second
// effect that is not wanted: such calls are flagged.
func repeatHurts(u messages.OnUnknown) bool { return u == messages.Pause || u == messages.Rerun }

// MustEnd says that a call runs that must not be cut off.
func (s *State) MustEnd() bool {
	if s.Turn == nil {
		return false
	}
	for _, c := range s.Turn.Calls {
		if c.Status == Executing && c.Child == nil && mustEnd(c.OnUnknown) {
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
	// Leaving says that the agent is about to go to another owner: calls that must not
	// be cut off are not begun, so that its next owner does, or this one after Stay.
	Leaving bool
}
