package turn

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// option returns what raises the limit in a resume.
func option(r projections.Exceeded) string {
	if r.Scope == messages.ScopeAgent {
		return fmt.Sprintf("%s of the agent (agent_limits.%s, --agent-%s)", r.Limit, r.Limit, strings.ReplaceAll(string(r.Limit), "_", "-"))
	}
	return string(r.Limit)
}

// budget is what bounds a turn, or all turns of an agent, and what was used of it.
type budget struct {
	scope  messages.Scope
	limits messages.Limits
	used   projections.Use
}

// budgets returns that of the turn, or of one that would begin now, and that of the agent, whose
// limits are the definition's but for those that a person has set.
func (d *decision) budgets() (turn, agent budget) {
	turn = budget{scope: messages.ScopeTurn, limits: d.env.Definition.TurnLimits}
	agent = budget{messages.ScopeAgent, d.env.Definition.AgentLimits.Override(d.s.Overrides), d.s.Used}
	if t := d.s.Turn; t != nil {
		turn.limits, turn.used = t.Limits, t.Used
		if turn.used.Steps = t.Steps; t.Model != nil { // another attempt is no other step
			turn.used.Steps--
			agent.used.Steps--
		}
	}
	return turn, agent
}

// exceeded returns the limit that does not allow so much more; the zero value if there is none.
func (b budget) exceeded(need projections.Use) projections.Exceeded {
	m, u, limit, message := b.limits, b.used, messages.Limit(""), ""
	switch {
	case m.MaxSteps != 0 && u.Steps+need.Steps > m.MaxSteps:
		limit, message = messages.LimitSteps, fmt.Sprintf("made %d model calls, its limit", u.Steps)
	case m.MaxTokens != 0 && u.Tokens+need.Tokens > m.MaxTokens:
		limit, message = messages.LimitTokens, fmt.Sprintf("used %d tokens and the next model call needs about %d: its limit is %d", u.Tokens, need.Tokens, m.MaxTokens)
	case m.MaxCost != 0 && u.Cost+need.Cost > m.MaxCost:
		limit, message = messages.LimitCost, fmt.Sprintf("cost %s and the next model call needs about %s: its limit is %s", u.Cost, need.Cost, m.MaxCost)
	case m.MaxDuration != 0 && u.Duration >= m.MaxDuration:
		limit, message = messages.LimitDuration, fmt.Sprintf("ran for %s: its limit is %s", ms(u.Duration), ms(m.MaxDuration))
	default:
		return projections.Exceeded{}
	}
	return projections.Exceeded{Scope: b.scope, Limit: limit, Message: fmt.Sprintf("the %s %s (%s)", b.scope, message, limit)}
}

// exceeded returns the limit that forbids another model call within these budgets; the zero value if
// there is none.
func (d *decision) exceeded(turn, agent budget) projections.Exceeded {
	need := d.estimate()
	need.Steps = 1
	if r := turn.exceeded(need); r.Limit != "" {
		return r
	}
	return agent.exceeded(need)
}

// limited returns the limit that forbids the turn's next model call; the zero value if there is
// none.
func (d *decision) limited() projections.Exceeded { return d.exceeded(d.budgets()) }

// refuseResume refuses to continue a turn whose budget is own, if a limit forbids its next model
// call also with those that c sets.
func (d *decision) refuseResume(c messages.Resume, id messages.TurnID, own budget) error {
	_, agent := d.budgets()
	own.limits, agent.limits = own.limits.Override(c.LimitOverrides.Limits()), agent.limits.Override(c.AgentLimits.Limits())
	if o := d.exceeded(own, agent); o.Limit != "" {
		return messages.Refuse(messages.Conflict, "turn %s cannot continue: %s; resume it with a higher %s", id, o.Message, option(o))
	}
	return nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// bytesPerToken is how many bytes of text count as a token: what English prose has with the
// usual tokenizers.
const bytesPerToken = 4

// budgeted reports whether tokens or money are limited, so that reservations are made.
func (d *decision) budgeted() bool {
	turn, agent := d.budgets()
	for _, l := range [...]messages.Limits{turn.limits, agent.limits} {
		if l.MaxTokens != 0 || l.MaxCost != 0 {
			return true
		}
	}
	return false
}

// estimate returns what the next model call is expected to use: its input by its size, its
// answer by the limit that the definition sets. Zero without a budget.
func (d *decision) estimate() projections.Use {
	if !d.budgeted() {
		return projections.Use{}
	}
	model := d.env.Definition.Model
	if d.s.Turn != nil {
		model, _ = d.s.Asks(d.env.Definition)
	}
	return d.expected(model, d.requestSize())
}

// expected returns what a call of the model with a request of so many bytes is expected to use.
func (d *decision) expected(model string, size int) projections.Use {
	u := messages.Usage{Input: tokensOf(size), Output: d.env.Definition.MaxOutput[model]}
	return projections.Use{Tokens: u.Tokens(), Cost: d.env.Definition.Prices[model].Cost(u)}
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

// resumeHigher follows the message of a limit that is reached.
const resumeHigher = "; resume it with a higher one to continue"

// withinLimits reports whether the turn may make another model call.
func (d *decision) withinLimits(t *projections.TurnState) bool {
	return t.Exceeded == nil && d.limited().Limit == ""
}

// exhaust records that the turn has reached a limit.
func (d *decision) exhaust(o projections.Exceeded) {
	d.emit(messages.BudgetExhausted{Turn: d.s.Turn.ID, Scope: o.Scope, Limit: o.Limit, Message: o.Message})
}
