package turn

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// requestModel requests the next step's model call, or the next attempt at the one that has no
// answer. It admits the inputs that steer the turn; if hooks were asked, those that they have seen.
func (d *decision) requestModel() {
	asked, steered := HooksAsked{}, d.s.Inputs.SteeredIDs()
	if d.asked.Point == BeforeModel {
		asked, steered = d.asked, d.asked.Seen
	}
	d.configure() // the definition may have changed since the turn began
	t, def := d.s.Turn, d.env.Definition
	step, attempt := t.Steps+1, 1
	if t.Model != nil {
		step, attempt = t.Steps, t.Model.Attempt+1
	}
	d.reserve(step)
	model, choice := d.s.Asks(def)
	ev := messages.ModelRequested{
		Turn: t.ID, Step: step, Attempt: attempt,
		Call:  messages.CallID(numbered("m", d.number())),
		Model: model, Definition: def.Digest, Instructions: def.Instructions,
		ToolChoice: choice, Inputs: t.Fresh, Rewritten: asked.Rewritten, RewrittenBlob: asked.RewrittenBlob,
	}
	for _, q := range d.s.Inputs.Steered {
		if slices.Contains(steered, q.ID) {
			ev.Inputs = append(ev.Inputs[:len(ev.Inputs):len(ev.Inputs)], q.ID)
		}
	}
	if len(ev.Inputs) > len(t.Fresh) { // inputs that steer come into the history with this event
		d.emit(ev)
		ev.Request = cmp.Or(asked.Request, d.digest(choice))
		d.events[len(d.events)-1] = ev
		return
	}
	ev.Request = cmp.Or(asked.Request, d.digest(choice))
	d.emit(ev)
}

// digest returns the hash of a request that no hook has changed.
func (d *decision) digest(choice string) string {
	return RequestDigest(&d.s.History, d.env.Definition.Digest, d.env.Definition.Instructions, choice)
}

// RequestDigest returns ModelRequested.Request of a request that no hook has changed, by its history,
// the hashes of its definition and instructions, and its tool choice.
func RequestDigest(h *projections.History, definition, instructions, choice string) string {
	parts := []string{definition, instructions}
	if choice != "" {
		parts = append(parts, choice)
	}
	return string(h.Digest(parts...))
}

// Asks returns which model the turn's next call asks, as provider/model, and what it
// is made to do, as in model.requested.
func (s *State) Asks(def Definition) (model, toolChoice string) {
	t := s.Turn
	model = def.Model
	if t.Switched != "" && slices.Contains(def.Fallbacks, t.Switched) {
		model = t.Switched
	}
	switch choice := t.ToolChoice; choice {
	case "", "none":
		return model, choice
	case "required":
		if !t.ToolUsed && len(def.Tools) > 0 {
			return model, choice
		}
	default:
		if _, ok := def.Tools[choice]; ok && !t.ToolUsed {
			return model, choice
		}
	}
	return model, ""
}

// Output returns what the turn would answer now. It reports false while it has no answer.
func (s *State) Output(def Definition) (projections.Output, bool) {
	t := s.Turn
	switch {
	case t.HookAnswer != nil:
		return projections.Output{Text: *t.HookAnswer}, true
	case t.Answer != nil:
		return *t.Answer, true
	}
	for _, c := range t.Calls {
		if c.Outcome == projections.CallCompleted && def.Tools[c.Tool].Stop {
			return projections.Output{Text: c.Output, Blob: c.Blob}, true
		}
	}
	return projections.Output{}, false
}

func (d *decision) answered(o ModelAnswered) {
	t := d.s.Turn
	m := t.Model
	items := slices.Clone(UniqueCalls(o.Items, t.CallIDs)) // the provider or a hook may keep and change its own
	cost := d.env.Definition.Prices[m.Model].Cost(o.Usage)
	finish := finishOf(o.Finish, items)
	d.emit(messages.ModelCompleted{Turn: t.ID, Step: t.Steps, Call: o.Call, Items: items, Finish: finish, Model: o.Model, Usage: o.Usage, Cost: cost, Blob: o.Blob})
	d.settle(m, o.Usage, cost, o.Usage == messages.Usage{})
	failed := d.decided(o.Hooks, "")
	for _, item := range items {
		if item.Type == messages.ItemCall {
			d.emit(messages.ToolRequested{Turn: t.ID, Step: t.Steps, Call: item.CallID, Tool: item.Name, Arguments: item.Arguments})
			switch c := t.Call(item.CallID); {
			case messages.CutOff(finish):
				d.cutOff(c, finish)
			case failed == "" && t.HookAnswer == nil: // else none of them will run
				d.review(c, o.Reviewed[item.CallID])
			}
		}
	}
	if failed != "" {
		d.fail(messages.FailedHook, failed)
	}
}

// UniqueCalls returns the items with an id for every call that no other call of the turn has: some
// servers leave it empty or count from zero in each answer. used are the ids of the turn so far.
// Calls whose ids are unique keep them. It returns items themselves if all are, and does not change
// them.
func UniqueCalls(items []messages.Item, used []messages.CallID) []messages.Item {
	used = slices.Clip(used)
	unique, changed := items, false
	for i, item := range items {
		if item.Type != messages.ItemCall {
			continue
		}
		id := item.CallID
		for n := 1; id == "" || slices.Contains(used, id); n++ {
			id = messages.CallID(fmt.Sprintf("%s_%d", cmp.Or(item.CallID, "call"), n))
		}
		if id != item.CallID {
			if !changed {
				unique, changed = slices.Clone(items), true
			}
			unique[i].CallID = id
		}
		used = append(used, id)
	}
	return unique
}

// finishOf returns why an answer ended. A refusal and an empty answer are recognized by their
// items, also if the server reports calls and there are none.
func finishOf(finish string, items []messages.Item) string {
	if projections.UnusualFinish(finish) != "" {
		return finish
	}
	empty := true
	for _, item := range items {
		switch item.Type {
		case messages.ItemRefusal:
			return messages.FinishRefusal
		case messages.ItemReasoning:
		case messages.ItemMessage:
			empty = empty && item.Content.Text() == "" && !item.HasBlob()
		default:
			empty = false
		}
	}
	if empty {
		return messages.FinishEmpty
	}
	return finish
}

func (d *decision) erred(o ModelErred) {
	t := d.s.Turn
	m, def := t.Model, d.env.Definition
	failed := messages.ModelFailed{
		Turn: t.ID, Step: t.Steps, Attempt: m.Attempt, Call: o.Call, Kind: o.Kind, Message: o.Message,
		Status: o.Status, Shown: o.Shown, Usage: o.Usage, Cost: def.Prices[m.Model].Cost(o.Usage),
	}
	at := logTime(d.env.Now.Add(retryDelay(m.Failures+1, o.RetryAfter, d.env.Jitter)))
	if d.triesAgain(m, o, at) {
		failed.RetryAt = &at
	}
	d.emit(failed)
	d.settle(m, o.Usage, failed.Cost, o.Unknown && o.Usage == messages.Usage{}) // one that broke off has used something
	next := d.fallback(m.Model)
	switch {
	case failed.RetryAt != nil:
		d.setTimer(projections.ForRetry, m.ID, at)
	case o.Kind == messages.ModelFailureContextLength && !m.Shortened && d.shrink():
	case next != "" && !o.Ours:
		d.emit(messages.ModelSwitched{Turn: t.ID, Step: t.Steps, From: m.Model, To: next, Reason: string(o.Kind) + ": " + o.Message})
	default:
		d.failModel(o)
	}
}

// triesAgain reports whether a model that has failed is asked again at that time. If the time is
// beyond the turn's end, or the server asks for a longer delay than retryMost, a fallback takes
// over instead, if there is one.
func (d *decision) triesAgain(m *projections.PendingModel, o ModelErred, at time.Time) bool {
	if !o.Temporary || m.Failures+1 >= d.env.Definition.MaxAttempts {
		return false
	}
	deadline := d.s.Timers.OfTurn(projections.DurationTimer)
	long := o.RetryAfter > retryMost || deadline != nil && !at.Before(deadline.At)
	return !long || d.fallback(m.Model) == ""
}

// fallback returns the model to ask after one that is not tried again: the next one of the list
// that is not listed before the failed one, too. Empty: none.
func (d *decision) fallback(failed string) string {
	def := d.env.Definition
	chain := append([]string{def.Model}, def.Fallbacks...)
	at := slices.Index(chain, failed)
	for _, next := range chain[at+1:] {
		if at >= 0 && !slices.Contains(chain[:at+1], next) {
			return next
		}
	}
	return ""
}

// Retries of model calls: exponential with equal jitter (half of the delay is spread), and not
// earlier than the server asks for, up to retryCap.
// See M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
const (
	retryBase = 500 * time.Millisecond
	retryMost = 30 * time.Second
	retryCap  = 5 * time.Minute
)

func retryDelay(failures int, after time.Duration, jitter float64) time.Duration {
	delay := min(retryBase<<min(failures-1, 16), retryMost)
	delay = delay/2 + time.Duration(jitter*float64(delay/2))
	return min(max(delay, after), retryCap)
}

// failModel fails the turn because its model failed, and all fallbacks. The failure is that of the
// request if a model refused it.
func (d *decision) failModel(o ModelErred) {
	r := d.s.Turn.Model.Refused
	if r.Kind == "" {
		r = projections.Refusal{Kind: o.Kind, Message: o.Message, Status: o.Status}
	}
	d.failAs(messages.TurnFailed{Reason: messages.FailedModel, Kind: r.Kind, Status: r.Status, Message: r.Message})
}

func (d *decision) restart(m *projections.PendingModel) {
	t := d.s.Turn
	d.emit(messages.ModelRestarted{Turn: t.ID, Step: t.Steps, Call: m.ID, Reason: "its process was lost before the answer was recorded"})
	d.settleLost(m)
	if t.Model.Restarts > maxRestarts {
		d.fail(messages.FailedRestarts, fmt.Sprintf("the model call was lost with its process %d times", t.Model.Restarts))
	}
}
