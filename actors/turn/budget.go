package turn

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// option returns what a person raises the limit with.
func option(r projections.Reached) string {
	if r.Scope == "agent" {
		return r.Limit + " of the agent (agent_limits." + r.Limit + ", --agent-" + strings.ReplaceAll(r.Limit, "_", "-") + ")"
	}
	return r.Limit
}

// agentLimits are the definition's, but for those that a person has set.
func (d *decision) agentLimits() messages.Limits { return d.raisedAgentLimits(messages.Limits{}) }

// raisedAgentLimits are the agent's limits once a person has set more.
func (d *decision) raisedAgentLimits(more messages.Limits) messages.Limits {
	return d.env.Definition.AgentLimits.Raise(d.s.Raised).Raise(more)
}

// over is the limit that forbids the turn's next model call.
func (d *decision) over(turn, agent messages.Limits) projections.Reached {
	t := d.s.Turn
	used := t.Used
	if used.Steps = t.Steps; t.Model != nil {
		used.Steps-- // another attempt is no other step
	}
	return d.overWith(used, turn, agent)
}

// overWith is over for a turn that has used so much.
func (d *decision) overWith(used projections.Use, turn, agent messages.Limits) projections.Reached {
	all := d.s.Used
	if t := d.s.Turn; t != nil && t.Model != nil {
		all.Steps--
	}
	need := d.estimate()
	for _, l := range [...]struct {
		scope  string
		limits messages.Limits
		used   projections.Use
	}{{"turn", turn, used}, {"agent", agent, all}} {
		m, u := l.limits, l.used
		switch {
		case m.MaxSteps != 0 && u.Steps+1 > m.MaxSteps:
			return projections.Reached{Scope: l.scope, Limit: "max_steps", Message: fmt.Sprintf("the %s made %d model calls, its limit (max_steps)", l.scope, u.Steps)}
		case m.MaxTokens != 0 && u.Tokens+need.Tokens > m.MaxTokens:
			return projections.Reached{Scope: l.scope, Limit: "max_tokens", Message: fmt.Sprintf("the %s used %d tokens and the next model call needs about %d: its limit is %d (max_tokens)", l.scope, u.Tokens, need.Tokens, m.MaxTokens)}
		case m.MaxCost != 0 && u.Cost+need.Cost > m.MaxCost:
			return projections.Reached{Scope: l.scope, Limit: "max_cost", Message: fmt.Sprintf("the %s cost %s and the next model call needs about %s: its limit is %s (max_cost)", l.scope, u.Cost, need.Cost, m.MaxCost)}
		case m.MaxDuration != 0 && u.Duration >= m.MaxDuration:
			return projections.Reached{Scope: l.scope, Limit: "max_duration", Message: fmt.Sprintf("the %s ran for %s: its limit is %s (max_duration)", l.scope, ms(u.Duration), ms(m.MaxDuration))}
		}
	}
	return projections.Reached{}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// bytesPerToken is how many bytes of text are taken for a token: what English
// prose has with the usual tokenizers.
const bytesPerToken = 4

// budgeted reports whether tokens or money are limited, so that reservations are made.
func (d *decision) budgeted() bool {
	limits := [...]messages.Limits{d.env.Definition.TurnLimits, d.agentLimits()}
	if t := d.s.Turn; t != nil {
		limits[0] = t.Limits
	}
	for _, l := range limits {
		if l.MaxTokens != 0 || l.MaxCost != 0 {
			return true
		}
	}
	return false
}

// estimate is what the next model call is expected to use: its input by its
// size, its answer by the limit that the definition sets. Zero without a budget.
func (d *decision) estimate() projections.Use {
	if !d.budgeted() {
		return projections.Use{}
	}
	def := d.env.Definition
	size := d.s.History.SizeShown(def.ShowAtMost) + def.Overhead
	model := def.Model
	if t := d.s.Turn; t != nil {
		model = d.model()
		for _, q := range d.s.Inputs.Steered {
			size += q.Size
		}
	}
	u := messages.Usage{Input: tokensOf(size), Output: def.MaxOutput[model]}
	return projections.Use{Tokens: u.Tokens(), Cost: def.Prices[model].Cost(u)}
}

// reserve sets aside what the next model call is expected to use.
func (d *decision) reserve(step int) {
	if d.budgeted() {
		need := d.estimate()
		d.emit(messages.BudgetReserved{Turn: d.s.Turn.ID, Step: step, Tokens: need.Tokens, Cost: need.Cost})
	}
}

// settle replaces the reservation of a model call by what the call used. If that is not known,
// the reservation counts.
func (d *decision) settle(m *projections.PendingModel, u messages.Usage, cost messages.Cost, unknown bool) {
	t := d.s.Turn
	if t.Reserved == nil {
		return
	}
	ev := messages.BudgetSettled{Turn: t.ID, Step: t.Steps, Call: m.ID, Tokens: u.Tokens(), Cost: cost}
	if unknown {
		ev.Tokens, ev.Cost, ev.Unknown = t.Reserved.Tokens, t.Reserved.Cost, true
	}
	d.emit(ev)
}

// settleLost settles a model call whose answer will never be known.
func (d *decision) settleLost(m *projections.PendingModel) { d.settle(m, messages.Usage{}, 0, true) }

// raiseIt is what a person can do about a limit.
const raiseIt = "; resume it with a higher one to go on"

// withinLimits reports whether the turn may make another model call.
func (d *decision) withinLimits(t *projections.TurnState) bool {
	return t.Reached == nil && d.over(t.Limits, d.agentLimits()).Limit == ""
}

// exhaust records that the turn has reached a limit.
func (d *decision) exhaust(o projections.Reached) {
	d.emit(messages.BudgetExhausted{Turn: d.s.Turn.ID, Scope: o.Scope, Limit: o.Limit, Message: o.Message})
}
