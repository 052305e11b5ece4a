package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Use is how much of a budget is used.
type Use struct {
	// Steps is how many model calls were made, attempts not counted.
	Steps int `json:"steps"`
	// Tokens are the tokens, input and output together.
	Tokens int `json:"tokens"`
	// Cost is the cost by the price table, in billionths of its unit.
	Cost messages.Cost `json:"cost_nanos,omitempty"`
	// Duration is the time in milliseconds up to the last stop of the clock, if a duration is limited.
	Duration int64 `json:"duration_ms,omitempty"`
}

// Add returns the sum.
func (u Use) Add(v Use) Use {
	return Use{u.Steps + v.Steps, u.Tokens + v.Tokens, u.Cost.Plus(v.Cost), u.Duration + v.Duration}
}

// useOf returns what an event counts as used by its turn and the agent, model calls left out.
func useOf(e *event) Use {
	if !e.Is(messages.CountsUse) {
		return Use{}
	}
	if end := childEndOf(e.Event); end.status != "" {
		return Use{Tokens: end.used.Tokens, Cost: end.used.Cost}
	}
	if timer := timerOver(e.Event); timer.id == DurationTimer && e.Turn != "" {
		return Use{Duration: timer.ran}
	}
	usage, cost, expected := UsedBy(e.Event)
	return Use{Tokens: usage.Tokens() + expected.Tokens, Cost: cost + expected.Cost}
}

// UsedBy returns what a call of a model has used, as far as its event reports it, and what the
// call was expected to use where that counts because it is not known.
func UsedBy(ev messages.Event) (usage messages.Usage, cost messages.Cost, expected Use) {
	unknown := false
	switch ev := ev.(type) {
	case messages.ModelCompleted:
		usage, cost = ev.Usage, ev.Cost
	case messages.ModelFailed:
		usage, cost = ev.Usage, ev.Cost
	case messages.BudgetSettled: // of a call that was lost; else model.completed or model.failed reports it
		if ev.Unknown {
			cost, expected.Tokens, unknown = ev.Cost, ev.Tokens, true
		}
	case messages.HistoryCompacted:
		usage, cost, expected.Tokens, unknown = ev.Usage, ev.Cost, ev.Tokens, ev.Unknown
	case messages.CompactionFailed:
		usage, cost, expected.Tokens, unknown = ev.Usage, ev.Cost, ev.Tokens, ev.Unknown
	}
	if unknown {
		expected.Cost, cost = cost, 0
	}
	return usage, cost, expected
}

// Budget is what may be used, and what was.
type Budget struct {
	// Limits are the limits of the turn. Those of an agent are only those that a person has set in place
	// of its definition's.
	Limits messages.Limits `json:"limits"`
	// Used is what was used so far.
	Used Use `json:"used"`
	// Reserved is what the running model call is expected to use, in addition to Used.
	Reserved Use `json:"reserved,omitzero"`
	// RunningSince is when the clock of a limited duration was started. Zero: it is stopped.
	RunningSince time.Time `json:"running_since,omitzero"`
}

// Budgets are the budgets of an agent and of its running or paused turn.
type Budgets struct {
	// Turn is the budget of the turn. Nil: the agent is idle.
	Turn *Budget `json:"turn,omitempty"`
	// Agent is the budget of all turns of the agent.
	Agent Budget `json:"agent"`
}

// Exceeded is a limit that a turn has exceeded, as in budget.exhausted.
type Exceeded struct {
	// Scope is what the limit is about.
	Scope messages.Scope `json:"scope"`
	// Limit is the limit that was exceeded.
	Limit   messages.Limit `json:"limit"`
	Message string         `json:"message"`
}

// Budgets returns the budgets as they are now.
func (w *Work) Budgets() Budgets {
	a := Budgets{Agent: Budget{Limits: w.Overrides, Used: w.Used}}
	t := w.Turn
	if t == nil {
		return a
	}
	turn := Budget{Limits: t.Limits, Used: t.Used}
	turn.Used.Steps = t.Steps
	if t.Reserved != nil {
		turn.Reserved = *t.Reserved
	}
	if clock := w.Timers.OfTurn(DurationTimer); clock != nil {
		turn.RunningSince = clock.Set.UTC()
	}
	a.Agent.Reserved, a.Agent.RunningSince = turn.Reserved, turn.RunningSince
	a.Turn = &turn
	return a
}
