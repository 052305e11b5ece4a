package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// ModelCall is what one attempt at a model call consumed.
type ModelCall struct {
	// N is the event that says how it ended.
	N    messages.EventNumber `json:"n"`
	Turn messages.TurnID      `json:"turn"`
	Step int                  `json:"step"`
	Call messages.CallID      `json:"call"`
	// Model is the one that answered as its provider named it, else the one
	// that was asked.
	Model string `json:"model,omitempty"`
	// Failed is the kind of a failed attempt; empty if it was answered.
	Failed string         `json:"failed,omitempty"`
	Usage  messages.Usage `json:"usage"`
}

// Usage lists what an agent's model calls consumed, failed attempts included,
// each once: totals in the events of a turn are sums of the same calls and are
// not added. The zero value has no call.
type Usage struct {
	calls []ModelCall
	total messages.Usage
	asked []askedModel // calls without an outcome
}

type askedModel struct {
	call  messages.CallID
	model string
}

// Apply folds event number n.
func (u *Usage) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ModelRequested:
		u.take(ev.Call)
		u.asked = append(u.asked, askedModel{ev.Call, ev.Model})
	case messages.ModelRestarted:
		u.take(ev.Call)
	case messages.ModelCompleted:
		model := u.take(ev.Call)
		if ev.Model != "" {
			model = ev.Model
		}
		u.add(ModelCall{N: n, Turn: ev.Turn, Step: ev.Step, Call: ev.Call, Model: model, Usage: ev.Usage})
	case messages.ModelFailed:
		u.add(ModelCall{N: n, Turn: ev.Turn, Step: ev.Step, Call: ev.Call, Model: u.take(ev.Call), Failed: ev.Kind, Usage: ev.Usage})
	case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
		u.asked = nil
	}
}

// take gives the model that was asked and forgets the call.
func (u *Usage) take(call messages.CallID) (model string) {
	u.asked = slices.DeleteFunc(u.asked, func(a askedModel) bool {
		if a.call == call {
			model = a.model
		}
		return a.call == call
	})
	return model
}

func (u *Usage) add(c ModelCall) {
	u.calls = append(u.calls, c)
	u.total = u.total.Add(c.Usage)
}

// Calls is every model call that has ended, oldest first.
func (u *Usage) Calls() []ModelCall { return slices.Clone(u.calls) }

// Total is the sum over Calls.
func (u *Usage) Total() messages.Usage { return u.total }

// ByTurn sums Calls for each turn.
func (u *Usage) ByTurn() map[messages.TurnID]messages.Usage {
	sums := make(map[messages.TurnID]messages.Usage)
	for _, c := range u.calls {
		sums[c.Turn] = sums[c.Turn].Add(c.Usage)
	}
	return sums
}

// ByModel sums Calls for each model.
func (u *Usage) ByModel() map[string]messages.Usage {
	sums := make(map[string]messages.Usage)
	for _, c := range u.calls {
		sums[c.Model] = sums[c.Model].Add(c.Usage)
	}
	return sums
}
