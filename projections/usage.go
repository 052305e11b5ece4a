package projections

import (
	"cmp"
	"maps"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// ModelCall is what one attempt at a model call consumed.
type ModelCall struct {
	// N is the event that says how it ended.
	N messages.EventNumber `json:"n"`
	// Turn is empty for a summary of the history that no turn has waited for.
	Turn messages.TurnID `json:"turn"`
	Step int             `json:"step"`
	Call messages.CallID `json:"call"`
	// Model is the one that was asked, as the definition names it: provider/model;
	// Answered where no event tells who was asked.
	Model string `json:"model,omitempty"`
	// Answered is the one that answered, as its provider named it.
	Answered string `json:"answered,omitempty"`
	// Failed is the kind of a failed attempt; empty if it was answered.
	Failed string `json:"failed,omitempty"`
	// Lost says that nobody heard the answer: the process died, or the turn
	// ended first. What the call consumed is not known, and its Usage is zero.
	Lost  bool           `json:"lost,omitempty"`
	Usage messages.Usage `json:"usage"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
}

// Spent is what some model calls consumed.
type Spent struct {
	// Calls is how many there were, failed and lost ones included; Lost how many
	// of them nobody knows the usage of.
	Calls int            `json:"calls"`
	Lost  int            `json:"lost,omitempty"`
	Usage messages.Usage `json:"usage"`
	Cost  messages.Cost  `json:"cost_nanos,omitempty"`
}

// With is the sum with one more call.
func (s Spent) With(c ModelCall) Spent {
	if s.Calls++; c.Lost {
		s.Lost++
	}
	s.Usage, s.Cost = s.Usage.Add(c.Usage), s.Cost.Plus(c.Cost)
	return s
}

// Usage lists what an agent's model calls consumed, failed attempts included,
// each once: totals in the events of a turn are sums of the same calls and are
// not added. Calls from before the agent was cleared count. The zero value has
// no call.
type Usage struct {
	calls []ModelCall
	total Spent
	asked []ModelCall // calls without an outcome
}

// Apply folds event number n.
func (u *Usage) Apply(n messages.EventNumber, ev messages.Event) {
	switch f := messages.FieldsOf(ev); {
	case f.Is(messages.BeginsModelCall):
		u.take(f.Call)
		u.asked = append(u.asked, ModelCall{Turn: f.Turn, Step: f.Step, Call: f.Call, Model: f.Model})
	case f.Is(messages.EndsModelCall) && f.Is(messages.Lost):
		u.lose(n, func(c ModelCall) bool { return c.Call == f.Call })
	case f.Is(messages.EndsModelCall) && f.Call != "": // a history may be compacted without a call
		u.ended(n, f, ev)
	case f.Is(messages.EndsTurn):
		u.lose(n, func(c ModelCall) bool { return c.Turn != "" })
	case f.Is(messages.EndsAgent):
		*u = Usage{}
	}
}

// ended adds a call that has ended.
func (u *Usage) ended(n messages.EventNumber, f messages.Fields, ev messages.Event) {
	c := ModelCall{N: n, Turn: f.Turn, Step: f.Step, Call: f.Call, Model: cmp.Or(u.take(f.Call).Model, f.Model), Failed: f.Kind}
	c.Usage, c.Cost, _ = modelUse(ev)
	if !f.Is(messages.Summarizes) {
		c.Answered = f.Model
	}
	if failed, ok := ev.(messages.CompactionFailed); ok && failed.Unknown {
		c.Failed, c.Lost = "", true
	}
	u.add(c)
}

// UsageAfter is the fold of what comes after asked: calls without an outcome,
// as another Usage told them. It counts what ends from then on.
func UsageAfter(asked []ModelCall) *Usage { return &Usage{asked: slices.Clone(asked)} }

// Asked is the model calls that have no outcome yet, oldest first.
func (u *Usage) Asked() []ModelCall { return slices.Clone(u.asked) }

// take gives a call that was asked and forgets it.
func (u *Usage) take(call messages.CallID) (asked ModelCall) {
	u.asked = slices.DeleteFunc(u.asked, func(c ModelCall) bool {
		if c.Call == call {
			asked = c
		}
		return c.Call == call
	})
	return asked
}

// lose says of chosen calls without an outcome that they will not have one.
func (u *Usage) lose(n messages.EventNumber, chosen func(ModelCall) bool) {
	rest := u.asked[:0]
	for _, c := range u.asked {
		if !chosen(c) {
			rest = append(rest, c)
			continue
		}
		c.N, c.Lost = n, true
		u.add(c)
	}
	u.asked = rest
}

func (u *Usage) add(c ModelCall) {
	u.calls = append(u.calls, c)
	u.total = u.total.With(c)
}

// Calls is every model call that has ended, oldest first.
func (u *Usage) Calls() []ModelCall { return slices.Clone(u.calls) }

// Total is the sum over Calls.
func (u *Usage) Total() Spent { return u.total }

// ByTurn sums Calls for each turn.
func (u *Usage) ByTurn() map[messages.TurnID]Spent {
	return sumBy(u.calls, func(c ModelCall) messages.TurnID { return c.Turn })
}

// ByModel sums Calls for each model.
func (u *Usage) ByModel() map[string]Spent {
	return sumBy(u.calls, func(c ModelCall) string { return c.Model })
}

func sumBy[K comparable](calls []ModelCall, key func(ModelCall) K) map[K]Spent {
	sums := make(map[K]Spent)
	for _, c := range calls {
		sums[key(c)] = sums[key(c)].With(c)
	}
	return sums
}

// UsageLine is a line of `reprise usage -o json`: first one for each model
// call, then one for each turn, in the order of their first calls (one without a
// turn is of summaries that none has waited for), one for each
// model, by name, and the total. Its names are promises.
type UsageLine struct {
	// Type is call, turn, model or total.
	Type string `json:"type"`
	// N, Step, Call, Answered, Failed and Lost belong to calls, as in ModelCall.
	N        messages.EventNumber `json:"n,omitempty"`
	Turn     messages.TurnID      `json:"turn,omitempty"` // of a call or turn
	Step     int                  `json:"step,omitempty"`
	Call     messages.CallID      `json:"call,omitempty"`
	Model    string               `json:"model,omitempty"` // of a call or model, as in ModelCall
	Answered string               `json:"answered,omitempty"`
	Failed   string               `json:"failed,omitempty"`
	// Calls is 1 for a call.
	Spent
}

// Lines is the whole as `reprise usage` prints it; the total is there even if
// nothing was called.
func (u *Usage) Lines() []UsageLine {
	lines := make([]UsageLine, 0, len(u.calls)+8)
	for _, c := range u.calls {
		lines = append(lines, UsageLine{"call", c.N, c.Turn, c.Step, c.Call, c.Model, c.Answered, c.Failed, Spent{}.With(c)})
	}
	byTurn, byModel := u.ByTurn(), u.ByModel()
	for _, c := range u.calls {
		if spent, first := byTurn[c.Turn]; first {
			lines = append(lines, UsageLine{Type: "turn", Turn: c.Turn, Spent: spent})
			delete(byTurn, c.Turn)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(byModel)) {
		lines = append(lines, UsageLine{Type: "model", Model: m, Spent: byModel[m]})
	}
	return append(lines, UsageLine{Type: "total", Spent: u.total})
}
