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
	return Use{u.Steps + v.Steps, u.Tokens + v.Tokens, u.Cost + v.Cost, u.Duration + v.Duration}
}

// Account is a budget: what may be used and what is.
type Account struct {
	// Limits of an agent are those that a person has set; what its definition
	// says is not in its events.
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

// Budget is what an agent's limits leave: what its turns have used, with what
// lost model calls are taken to have used. The zero value has used nothing.
type Budget struct {
	turn    messages.TurnID // running or paused; empty: none
	account Account         // of turn
	agent   Account
	clocks  []messages.TimerSet // of limited durations, running
	ended   []endedTurn         // turns that may be continued: the newest one
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
	case messages.TurnResumed:
		b.raise(ev.Turn, messages.Limits{MaxSteps: ev.MaxSteps})
	case messages.BudgetRaised:
		if ev.Scope == "agent" {
			b.agent.Limits = b.agent.Limits.Raise(ev.Limits)
		} else {
			b.raise(ev.Turn, ev.Limits)
		}
	case messages.TurnCompleted:
		b.end(ev.Turn)
	case messages.TurnFailed:
		b.end(ev.Turn)
	case messages.TurnAborted:
		b.end(ev.Turn)
	case messages.ModelRequested:
		if ev.Turn == b.turn && ev.Step > b.account.Used.Steps {
			b.use(ev.Turn, Use{Steps: ev.Step - b.account.Used.Steps})
		}
	case messages.ModelCompleted:
		b.use(ev.Turn, Use{Tokens: ev.Usage.Tokens(), Cost: ev.Cost})
	case messages.ModelFailed:
		b.use(ev.Turn, Use{Tokens: ev.Usage.Tokens(), Cost: ev.Cost})
	case messages.BudgetReserved:
		b.reserve(ev.Turn, Use{Tokens: ev.Tokens, Cost: ev.Cost})
	case messages.BudgetSettled:
		b.reserve(ev.Turn, Use{})
		if ev.Unknown { // nobody says what it used
			b.use(ev.Turn, Use{Tokens: ev.Tokens, Cost: ev.Cost})
		}
	default:
		b.tick(ev)
	}
}

// tick folds what is said of a duration's clock.
func (b *Budget) tick(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.TimerSet:
		if ev.For == "duration" {
			b.clocks = append(b.clocks, ev)
		}
	case messages.TimerFired:
		b.stop(ev.Turn, ev.Timer, ev.Ran)
	case messages.TimerCancelled:
		b.stop(ev.Turn, ev.Timer, ev.Ran)
	}
}

func (b *Budget) started(ev messages.TurnStarted) {
	b.turn, b.account = ev.Turn, Account{Limits: ev.Limits.Raise(messages.Limits{MaxSteps: ev.MaxSteps})}
	for _, e := range b.ended {
		if ev.Continues != "" && e.turn == ev.Continues {
			b.account.Used = e.used
		}
	}
	b.account.Used.Steps = max(b.account.Used.Steps, ev.Steps)
	b.ended = nil
}

func (b *Budget) raise(turn messages.TurnID, limits messages.Limits) {
	if turn == b.turn {
		b.account.Limits = b.account.Limits.Raise(limits)
	}
}

func (b *Budget) use(turn messages.TurnID, u Use) {
	b.agent.Used = b.agent.Used.add(u)
	if turn == b.turn {
		b.account.Used = b.account.Used.add(u)
	}
}

func (b *Budget) reserve(turn messages.TurnID, u Use) {
	if turn == b.turn {
		b.account.Reserved = u
	}
}

func (b *Budget) stop(turn messages.TurnID, timer string, ran int64) {
	i := slices.IndexFunc(b.clocks, func(c messages.TimerSet) bool { return c.Turn == turn && c.Timer == timer })
	if i >= 0 {
		b.clocks = slices.Delete(b.clocks, i, i+1)
		b.use(turn, Use{Duration: ran})
	}
}

func (b *Budget) end(turn messages.TurnID) {
	b.clocks = slices.DeleteFunc(b.clocks, func(c messages.TimerSet) bool { return c.Turn == turn })
	if turn == b.turn && turn != "" {
		b.ended = []endedTurn{{turn, b.account.Used}}
		b.turn, b.account = "", Account{}
	}
}

// Accounts is the budgets as they are now. It is the caller's.
func (b *Budget) Accounts() Accounts {
	a := Accounts{Agent: b.agent}
	if b.turn == "" {
		return a
	}
	turn := b.account
	for _, c := range b.clocks {
		if c.Turn == b.turn {
			turn.RunningSince = c.Set.UTC()
		}
	}
	a.Agent.Reserved, a.Agent.RunningSince = turn.Reserved, turn.RunningSince
	a.Turn = &turn
	return a
}
