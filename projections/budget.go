package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Use is how much of a budget is used.
type Use struct {
	// Steps is model calls, attempts not counted.
	Steps  int           `json:"steps"`
	Tokens int           `json:"tokens"`
	Cost   messages.Cost `json:"cost_nanos,omitempty"`
	// Duration is in milliseconds, as far as timers that have ended tell it; it
	// is kept only where a limit is set.
	Duration int64 `json:"duration_ms,omitempty"`
}

func (u Use) add(v Use) Use {
	return Use{u.Steps + v.Steps, u.Tokens + v.Tokens, u.Cost.Plus(v.Cost), u.Duration + v.Duration}
}

// Account is a budget: what may be used and what is.
type Account struct {
	// Limits of an agent are those that a person has set; they hold in place of
	// its definition's. What its definition limits is not in its events, and not
	// here.
	Limits messages.Limits `json:"limits"`
	Used   Use             `json:"used"`
	// Reserved is set aside for the model call under way, on top of Used.
	Reserved Use `json:"reserved,omitzero"`
	// RunningSince is when the clock of a limited duration was started. Zero: it
	// does not run.
	RunningSince time.Time `json:"running_since,omitzero"`
}

// Accounts are the budgets of an agent and of its running or paused turn.
type Accounts struct {
	Turn  *Account `json:"turn,omitempty"` // nil if the agent is idle
	Agent Account  `json:"agent"`
}

// Reached is a limit that a turn has reached, as in budget.exhausted.
type Reached struct {
	// Scope is turn or agent, Limit max_steps, max_tokens, max_cost or
	// max_duration.
	Scope   string `json:"scope"`
	Limit   string `json:"limit"`
	Message string `json:"message"`
}

// Budget is what an agent's limits leave: what its turns have used, with what
// lost model calls are taken to have used. It counts as the turn machine does,
// which compares the same numbers with the limits. The zero value has used
// nothing.
type Budget struct {
	turn    *Account // running or paused; nil: none
	agent   Account
	paused  string              // why the turn is, as in turn.paused
	reached *Reached            // by the turn, and neither raised nor resumed from since
	clocks  []messages.TimerSet // of limited durations, running
	ended   endedTurn           // the newest: it may be continued
}

// endedTurn is a turn with what it had used, for one that continues it.
type endedTurn struct {
	turn messages.TurnID
	used Use
}

// Apply folds event number n.
func (b *Budget) Apply(_ messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.TurnStarted:
		b.started(ev)
	case messages.TurnCompleted:
		b.end(ev.Turn)
	case messages.TurnFailed:
		b.end(ev.Turn)
	case messages.TurnAborted:
		b.end(ev.Turn)
	case messages.AgentDeleted:
		*b = Budget{}
	case messages.AgentCleared:
		b.ended = endedTurn{}
	case messages.BudgetRaised:
		b.raised(ev)
	case messages.ChildStopped: // its turn has ended
		b.agent.Used = b.agent.Used.add(Use{Tokens: ev.Tokens, Cost: ev.Cost})
	case messages.HistoryCompacted:
		b.summary(ev.Turn, Use{Tokens: ev.Tokens + ev.Usage.Tokens(), Cost: ev.Cost})
	case messages.CompactionFailed:
		b.summary(ev.Turn, Use{Tokens: ev.Tokens + ev.Usage.Tokens(), Cost: ev.Cost})
	default:
		if b.turn != nil && !messages.OfAgent(ev) {
			b.applyTurn(ev)
		}
	}
}

// applyTurn folds what is said of the turn.
func (b *Budget) applyTurn(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.TurnPaused:
		b.paused = ev.Reason
	case messages.TurnResumed:
		b.resumed(ev)
	case messages.ModelRequested:
		if ev.Step > b.turn.Used.Steps { // else another attempt
			b.agent.Used.Steps++
		}
		b.turn.Used.Steps = ev.Step
	case messages.ModelCompleted:
		b.use(Use{Tokens: ev.Usage.Tokens(), Cost: ev.Cost})
	case messages.ModelFailed:
		b.use(Use{Tokens: ev.Usage.Tokens(), Cost: ev.Cost})
	case messages.ChildCompleted:
		b.use(Use{Tokens: ev.Tokens, Cost: ev.Cost})
	case messages.ChildFailed:
		b.use(Use{Tokens: ev.Tokens, Cost: ev.Cost})
	case messages.BudgetReserved:
		b.turn.Reserved = Use{Tokens: ev.Tokens, Cost: ev.Cost}
	case messages.BudgetSettled:
		b.turn.Reserved = Use{}
		if ev.Unknown { // nobody says what it used
			b.use(Use{Tokens: ev.Tokens, Cost: ev.Cost})
		}
	case messages.BudgetExhausted:
		b.reached = &Reached{ev.Scope, ev.Limit, ev.Message}
	case messages.TimerSet:
		b.stop(ev.Timer, 0) // one of its name is replaced
		if ev.For == "duration" {
			b.clocks = append(b.clocks, ev)
		}
	case messages.TimerFired:
		b.stop(ev.Timer, ev.Ran)
	case messages.TimerCancelled:
		b.stop(ev.Timer, ev.Ran)
	}
}

func (b *Budget) started(ev messages.TurnStarted) {
	b.over()
	b.turn = &Account{Limits: ev.Limits}
	b.turn.Limits.MaxSteps = ev.MaxSteps
	if ev.Continues != "" && ev.Continues == b.ended.turn {
		b.turn.Used = b.ended.used
	}
	b.turn.Used.Steps = ev.Steps
}

// resumed folds that the turn goes on: past a limit only if that was what it
// waited for.
func (b *Budget) resumed(ev messages.TurnResumed) {
	switch b.paused {
	case "approval", "tool_unknown", "hook", "child":
	default:
		b.reached = nil
	}
	b.paused = ""
	b.turn.Limits = b.turn.Limits.Raise(messages.Limits{MaxSteps: ev.MaxSteps})
}

func (b *Budget) raised(ev messages.BudgetRaised) {
	switch {
	case ev.Scope == "agent":
		b.agent.Limits = b.agent.Limits.Raise(ev.Limits)
	case b.turn != nil:
		b.turn.Limits = b.turn.Limits.Raise(ev.Limits)
	}
	if b.reached != nil && sets(ev.Limits, b.reached.Limit) {
		b.reached = nil
	}
}

// sets says whether l sets the limit of that name.
func sets(l messages.Limits, name string) bool {
	switch name {
	case "max_steps":
		return l.MaxSteps != 0
	case "max_tokens":
		return l.MaxTokens != 0
	case "max_cost":
		return l.MaxCost != 0
	case "max_duration":
		return l.MaxDuration != 0
	}
	return false
}

// summary counts what a summary has used, for the turn that waited for it, if one
// did, and for the agent.
func (b *Budget) summary(turn messages.TurnID, u Use) {
	b.agent.Used = b.agent.Used.add(u)
	if b.turn != nil && turn != "" {
		b.turn.Used = b.turn.Used.add(u)
	}
}

func (b *Budget) use(u Use) { b.agent.Used, b.turn.Used = b.agent.Used.add(u), b.turn.Used.add(u) }

// stop ends a clock, if the timer is one, that ran for so many milliseconds.
func (b *Budget) stop(timer string, ran int64) {
	i := slices.IndexFunc(b.clocks, func(c messages.TimerSet) bool { return c.Timer == timer })
	if i >= 0 {
		b.clocks = slices.Delete(b.clocks, i, i+1)
		b.use(Use{Duration: ran})
	}
}

func (b *Budget) end(turn messages.TurnID) {
	b.ended = endedTurn{turn: turn}
	if b.turn != nil {
		b.ended.used = b.turn.Used
	}
	b.over()
}

// over forgets the turn, but for what it has used.
func (b *Budget) over() { b.turn, b.paused, b.reached, b.clocks = nil, "", nil, nil }

// Accounts is the budgets as they are now. It is the caller's.
func (b *Budget) Accounts() Accounts {
	a := Accounts{Agent: b.agent}
	if b.turn == nil {
		return a
	}
	turn := *b.turn
	for _, c := range b.clocks {
		turn.RunningSince = c.Set.UTC()
	}
	a.Agent.Reserved, a.Agent.RunningSince = turn.Reserved, turn.RunningSince
	a.Turn = &turn
	return a
}

// Reached is the limit that keeps the turn from going on to another model call,
// until it is raised or the turn resumed; false if there is none.
func (b *Budget) Reached() (Reached, bool) {
	if b.reached == nil {
		return Reached{}, false
	}
	return *b.reached, true
}
