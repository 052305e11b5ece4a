package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Relation is how a line of a chain of causes is related to the event that it explains.
type Relation string

// The relations.
const (
	CauseEvent    Relation = "event"    // the event that is asked about
	CauseThen     Relation = "then"     // what happened later to the same call
	CauseBefore   Relation = "before"   // what happened before to the same call, turn or timer
	CauseDecided  Relation = "decided"  // a decision about the call
	CauseAsked    Relation = "asked"    // the answer of a model that asked for the call
	CauseAnswered Relation = "answered" // the model call with that answer, or the one that failed
	CauseSaw      Relation = "saw"      // a result that this model call was the first to include
	CauseStarted  Relation = "started"  // the start of the turn
	CauseInput    Relation = "input"    // an input of the turn
	CauseParent   Relation = "parent"   // the call of the parent that the turn works for
	CauseRepeats  Relation = "repeats"  // an earlier call or input that is equal
	CauseRepeated Relation = "repeated" // a later call that is equal
	CauseEqual    Relation = "equal"    // an equal call of the parent or of another child of the parent
	CauseMissing  Relation = "missing"  // what cannot be read, with the reason
)

// Cause is a line of a chain of causes.
type Cause struct {
	// Relation is how the line is related to the event that is explained.
	Relation Relation         `json:"relation"`
	Agent    messages.AgentID `json:"agent"`
	// N is the number of the event. 0: the line is about no event.
	N messages.EventNumber `json:"n,omitempty"`
	// At is the time of the event.
	At   time.Time       `json:"at,omitzero"`
	Type string          `json:"type,omitempty"`
	Turn messages.TurnID `json:"turn,omitempty"`
	Call messages.CallID `json:"call,omitempty"`
	// Text is what happened, for a person, shortened.
	Text string `json:"text"`
	// Command is the type of the command that recorded the event. Of several lines about one frame only the
	// last one has it. Empty: a model, a tool, a timer or a takeover led to the event.
	Command string `json:"command,omitempty"`
	// ID is the id of that command.
	ID string `json:"id,omitempty"`
	// Endpoint is where that command was received.
	Endpoint messages.Endpoint `json:"endpoint,omitempty"`
	// Person is the person who sent that command. Nil: no person is named.
	Person *messages.Person `json:"person,omitempty"`
	// More is how many lines of this relation are left out behind this one.
	More int `json:"more,omitempty"`

	frame messages.EventNumber // the first event of the frame
}

// Causes folds the chain of causes of one event of an agent: what it is about, the model call that
// asked for it, the inputs behind that, and equal calls of the agent in any turn. Chains of other
// agents are not part of it. The memory that it takes grows with the number of the agent's turns,
// inputs and tool calls, not with their texts.
type Causes struct {
	// N is the event that is asked about. 0: the child.spawned of a call is, if Task names one.
	N    messages.EventNumber
	Task messages.Caller
	// Decisions are ids of forwarded commands. The lines of those that this agent forwarded
	// belong to its chain.
	Decisions []string

	origin
	cause     messages.Cause
	frame     messages.EventNumber
	turns     map[messages.TurnID]*causedTurn
	inputs    map[string]*causedInput
	contents  map[messages.Digest]*causedInput // the newest input of each content
	timers    map[timerName]Cause
	fired     firedTimer
	compacted causedTurn // compactions that belong to no turn
	spawned   []spawnedChild
	made      []madeCall // of turns that have ended

	chain     []Cause
	call      *causedCall      // that the event is about
	resends   *causedInput     // of the chain, one with the content of an earlier input
	parent    *messages.Parent // that the turn of the event works for
	forwarded []Cause
}

// timerName names a timer of an agent. The turn is empty for one of the agent itself.
type timerName struct {
	turn messages.TurnID
	id   string
}

// firedTimer is the timer that fired last: what set it, and the input that it brings.
type firedTimer struct {
	timerName
	input      string
	set, fired Cause
}

// spawnedChild is a call that is the task of a child.
type spawnedChild struct {
	Cause
	child  string               // its full address
	answer messages.EventNumber // of the model that asked for it
}

// InFrame implements [Framed].
func (c *Causes) InFrame(f *messages.Frame) {
	c.origin.InFrame(f)
	c.cause, c.frame = f.Cause, f.First
}

// Apply folds event number n.
func (c *Causes) Apply(n messages.EventNumber, ev messages.Event) {
	e := c.event(n, ev)
	if e.Is(messages.EndsAgent) {
		c.restart()
	}
	c.record(e)
	if c.asks(e) {
		c.explain(e)
	}
	c.note(e)
}

// restart drops everything but what is asked and the frame.
func (c *Causes) restart() {
	*c = Causes{N: c.N, Task: c.Task, Decisions: c.Decisions, origin: c.origin, cause: c.cause, frame: c.frame}
}

// asks reports whether the event is asked about.
func (c *Causes) asks(e *event) bool {
	if c.N != 0 || c.Task.Call == "" {
		return e.n == c.N
	}
	_, spawns := e.Event.(messages.ChildSpawned)
	return spawns && len(c.chain) == 0 && e.Turn == c.Task.Turn && e.Call == c.Task.Call
}

// Settled reports whether later events add nothing: the event is known and is about no tool call.
func (c *Causes) Settled() bool {
	return len(c.chain) > 0 && c.call == nil && c.N != 0 && len(c.Decisions) == 0
}

// line describes an event.
func (c *Causes) line(r Relation, e *event) Cause {
	l := Cause{Relation: r, N: e.n, At: e.at, Type: e.EventType(), Turn: e.Turn, Call: e.Call, Text: causeText(e.Event), frame: c.frame}
	if c.cause.Type != messages.CauseEffect && c.cause.Type != messages.CauseTakeover {
		l.Command, l.ID, l.Endpoint, l.Person = c.cause.Type, c.cause.ID, c.cause.Endpoint, e.by
	}
	return l
}

// record folds an event into what later events may be explained by.
func (c *Causes) record(e *event) {
	switch ev := e.Event.(type) {
	case messages.InputAccepted:
		c.accept(e, ev)
	case messages.TurnStarted:
		c.start(e, ev)
	case messages.TimerSet:
		c.setTimer(e, ev)
	case messages.TimerFired:
		c.fireTimer(e, ev)
	case messages.ChildDecided:
		if slices.Contains(c.Decisions, ev.ID) {
			c.forwarded = append(c.forwarded, c.line(CauseDecided, e))
		}
	}
	t := c.turnOf(e)
	switch {
	case t == nil:
	case e.Is(messages.BeginsModelCall):
		t.begin(c.line(CauseAnswered, e), e)
	case e.Is(messages.EndsModelCall):
		t.answer(c.line(CauseAsked, e), e)
	default:
		c.applyCall(t, e)
	}
}

// turnOf returns the turn of an event. Compactions that no turn waits for have one of their own. Nil:
// the event belongs to no turn.
func (c *Causes) turnOf(e *event) *causedTurn {
	if e.Turn == "" && e.Is(messages.BeginsModelCall|messages.EndsModelCall) {
		return &c.compacted
	}
	return c.turns[e.Turn]
}

// setTimer keeps what set a timer. One with a cron line is set again each time it fires: what set it
// first is kept.
func (c *Causes) setTimer(e *event, ev messages.TimerSet) {
	name, l := timerName{ev.Turn, ev.Timer}, c.line(CauseBefore, e)
	if ev.For == ForInput && ev.Input == nil && c.fired.timerName == name {
		l = c.fired.set
	}
	put(&c.timers, name, l)
}

// fireTimer keeps what set a timer for the input that it brings.
func (c *Causes) fireTimer(e *event, ev messages.TimerFired) {
	name := timerName{ev.Turn, ev.Timer}
	c.fired = firedTimer{name, ev.Input, c.timers[name], c.line(CauseBefore, e)}
	delete(c.timers, name)
}

// note keeps an event of a turn that may explain a later one of the turn.
func (c *Causes) note(e *event) {
	t := c.turns[e.Turn]
	switch ev := e.Event.(type) {
	case messages.TimerCancelled:
		delete(c.timers, timerName{ev.Turn, ev.Timer})
	case messages.TimerSet, messages.BudgetReserved, messages.BudgetSettled, messages.ChildWaiting, messages.ChildResumed:
	default:
		if t != nil {
			t.newest = c.line(CauseBefore, e)
		}
	}
	if t != nil && e.Is(messages.EndsTurn) {
		c.made = append(c.made, t.end(e)...)
	}
}
