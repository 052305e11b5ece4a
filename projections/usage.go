package projections

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// ModelCall is what one attempt at a model call consumed.
type ModelCall struct {
	// N is the event that ended it.
	N messages.EventNumber `json:"n"`
	// Turn is empty for a summary of the history that no turn has waited for.
	Turn messages.TurnID `json:"turn"`
	Step int             `json:"step"`
	Call messages.CallID `json:"call"`
	// Model is the model that was called, as `provider/model`, or Answered if no event names it.
	Model string `json:"model,omitempty"`
	// Answered is the model that answered, as its provider names it.
	Answered string `json:"answered,omitempty"`
	// Failed is why the attempt failed, as a word to branch on. Empty: it was answered.
	Failed string `json:"failed,omitempty"`
	// Lost reports whether the answer was lost: the process died, or the turn ended first.
	Lost bool `json:"lost,omitempty"`
	// Usage is what the call used. That of a lost call is not known, and zero here.
	Usage messages.Usage `json:"usage"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
}

// Used is what some model calls consumed.
type Used struct {
	// Calls is how many calls there were, failed and lost ones included.
	Calls int `json:"calls"`
	// Lost is how many of them have an unknown usage.
	Lost  int            `json:"lost,omitempty"`
	Usage messages.Usage `json:"usage"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
}

// With returns the sum with one more call.
func (u Used) With(c ModelCall) Used {
	if u.Calls++; c.Lost {
		u.Lost++
	}
	u.Usage, u.Cost = u.Usage.Add(c.Usage), u.Cost.Plus(c.Cost)
	return u
}

// Plus returns the sum of both.
func (u Used) Plus(v Used) Used {
	return Used{u.Calls + v.Calls, u.Lost + v.Lost, u.Usage.Add(v.Usage), u.Cost.Plus(v.Cost)}
}

// Usage lists what an agent's model calls consumed, failed attempts included,
// each once: totals in the events of a turn are sums of the same calls and are
// not added. Calls from before the agent was cleared count. The zero value has no
// call.
type Usage struct {
	calls []ModelCall
	total Used
	asked []ModelCall // calls without an outcome
}

// Apply folds event number n.
func (u *Usage) Apply(n messages.EventNumber, ev messages.Event) {
	f := messages.FieldsOf(ev)
	same := func(c *ModelCall) bool { return c.Call == f.Call }
	switch {
	case f.Is(messages.BeginsModelCall):
		u.take(same)
		u.asked = append(u.asked, modelCall(f, ev))
	case f.Is(messages.EndsModelCall) && f.Is(messages.Lost):
		u.lose(n, same)
	case f.Is(messages.EndsModelCall) && f.Call != "": // a history may be compacted without a call
		c := modelCall(f, ev)
		if !f.Is(messages.Summarizes) {
			c.Answered = c.Model
		}
		for _, asked := range u.take(same) {
			c.Model = cmp.Or(asked.Model, c.Model)
		}
		c.N = n
		u.add(c)
	case f.Is(messages.EndsTurn):
		u.lose(n, func(c *ModelCall) bool { return c.Turn != "" })
	case f.Is(messages.EndsAgent):
		*u = Usage{}
	}
}

// modelCall returns the call that an event begins or ends, as the event reports it.
func modelCall(f messages.Fields, ev messages.Event) ModelCall {
	c := ModelCall{Turn: f.Turn, Step: messages.StepOf(ev), Call: f.Call, Model: messages.ModelOf(ev), Failed: messages.KindOf(ev)}
	c.Usage, c.Cost, _ = UsedBy(ev)
	if failed, ok := ev.(messages.CompactionFailed); ok && failed.Unknown {
		c.Failed, c.Lost = "", true
	}
	return c
}

// UsageAfter returns the fold of what comes after asked: calls without an outcome, as another
// Usage has listed them. It counts what ends from then on.
func UsageAfter(asked []ModelCall) *Usage { return &Usage{asked: slices.Clone(asked)} }

// Asked returns the model calls that have no outcome yet, oldest first.
func (u *Usage) Asked() []ModelCall { return slices.Clone(u.asked) }

// take drops chosen calls without an outcome and returns them.
func (u *Usage) take(chosen func(*ModelCall) bool) (taken []ModelCall) {
	for i := range u.asked {
		if c := &u.asked[i]; chosen(c) {
			taken = append(taken, *c)
		}
	}
	u.asked = without(u.asked, chosen)
	return taken
}

// lose adds chosen calls without an outcome as lost ones.
func (u *Usage) lose(n messages.EventNumber, chosen func(*ModelCall) bool) {
	for _, c := range u.take(chosen) {
		c.N, c.Lost = n, true
		u.add(c)
	}
}

func (u *Usage) add(c ModelCall) {
	u.calls = append(u.calls, c)
	u.total = u.total.With(c)
}

// Calls returns every model call that has ended, oldest first.
func (u *Usage) Calls() []ModelCall { return slices.Clone(u.calls) }

// Total returns the sum over Calls.
func (u *Usage) Total() Used { return u.total }

// sumBy sums calls by a key of theirs.
func sumBy[K comparable](calls []ModelCall, key func(ModelCall) K) map[K]Used {
	sums := make(map[K]Used)
	for _, c := range calls {
		sums[key(c)] = sums[key(c)].With(c)
	}
	return sums
}

// UsageLine is a line of `reprise usage -o json`: first one for each model
// call, then one for each turn, in the order of their first calls (one without a
// turn is of summaries that no turn has waited for), one for each
// model, by name, and the total. Its names are promises.
type UsageLine struct {
	// Type is `call`, `turn`, `model` or `total`.
	Type string `json:"type"`
	// N is the number of the event that ended the call. Only lines of type call have it, and a step, call,
	// answered and failed.
	N messages.EventNumber `json:"n,omitempty"`
	// Turn is the turn of a line of type call or turn.
	Turn messages.TurnID `json:"turn,omitempty"`
	Step int             `json:"step,omitempty"`
	Call messages.CallID `json:"call,omitempty"`
	// Model is the model that was called, as `provider/model`, of a line of type call or model.
	Model string `json:"model,omitempty"`
	// Answered is the model that answered, as its provider names it.
	Answered string `json:"answered,omitempty"`
	// Failed is why the call failed. Empty: it was answered.
	Failed string `json:"failed,omitempty"`
	// Calls is 1 for a call.
	Used
}

// UsageSum is a line of `reprise usage -o json` for all agents: what the model
// calls of one agent, kind, model, day or hour used, or all of them. Its names
// are promises.
type UsageSum struct {
	// Type is `agent`, `kind`, `model`, `day`, `hour` or `total`.
	Type  string            `json:"type"`
	Agent *messages.AgentID `json:"agent,omitempty"`
	Kind  string            `json:"kind,omitempty"`
	Model string            `json:"model,omitempty"`
	// From is when a day or hour begins.
	From time.Time `json:"from,omitzero"`
	// Failed is how many of the calls failed.
	Failed int `json:"failed,omitempty"`
	Used
}

// Lines returns all lines of `reprise usage`; the total is there even if nothing was called.
func (u *Usage) Lines() []UsageLine {
	lines := make([]UsageLine, 0, len(u.calls)+8)
	for _, c := range u.calls {
		lines = append(lines, UsageLine{"call", c.N, c.Turn, c.Step, c.Call, c.Model, c.Answered, c.Failed, Used{}.With(c)})
	}
	byTurn := sumBy(u.calls, func(c ModelCall) messages.TurnID { return c.Turn })
	byModel := sumBy(u.calls, func(c ModelCall) string { return c.Model })
	for _, c := range u.calls {
		if used, first := byTurn[c.Turn]; first {
			lines = append(lines, UsageLine{Type: "turn", Turn: c.Turn, Used: used})
			delete(byTurn, c.Turn)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(byModel)) {
		lines = append(lines, UsageLine{Type: "model", Model: m, Used: byModel[m]})
	}
	return append(lines, UsageLine{Type: "total", Used: u.total})
}
