package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// maxRestarts is how often one step's model call may be lost with its process
// before the turn is failed, and how often one tool call: a call that kills its
// process must not do so for ever.
const maxRestarts = 10

func (d *decision) outcome(o any) {
	if d.s.Turn == nil {
		return
	}
	switch o := o.(type) {
	case ModelAnswered:
		if d.awaits(o.Call) {
			d.answered(o)
		}
	case ModelErred:
		if d.awaits(o.Call) {
			d.erred(o)
		}
	case RetryDue:
		if m := d.s.Turn.Model; m != nil && m.ID == o.Call && !m.RetryAt.IsZero() {
			d.requestStep(d.s.Turn.Steps, m.Attempt+1, nil)
		}
	case ToolReturned:
		if c := d.runs(o.Call, o.Attempt); c != nil {
			d.emit(messages.ToolCompleted{Turn: d.s.Turn.ID, Call: c.ID, Output: o.Output})
			d.advance()
		}
	case ToolErred:
		if c := d.runs(o.Call, o.Attempt); c != nil {
			d.emit(messages.ToolFailed{Turn: d.s.Turn.ID, Call: c.ID, Kind: o.Kind, Message: o.Message})
			d.advance()
		}
	case ToolReconciled:
		d.reconciled(o)
	case Recover:
		d.recover()
	}
}

// awaits says that the model call is the one under way.
func (d *decision) awaits(call messages.CallID) bool {
	m := d.s.Turn.Model
	return m != nil && m.ID == call && m.RetryAt.IsZero()
}

// runs is the tool call if that attempt of it is under way.
func (d *decision) runs(call messages.CallID, attempt int) *ToolCall {
	c := d.s.Turn.call(call)
	if c == nil || c.Status != Executing || c.Attempt != attempt || d.s.lost[call] {
		return nil
	}
	return c
}

func (d *decision) answered(o ModelAnswered) {
	t := d.s.Turn
	items := d.uniqueCalls(o.Items)
	d.emit(messages.ModelCompleted{Turn: t.ID, Step: t.Steps, Call: o.Call, Items: items, Finish: o.Finish, Model: o.Model, Usage: o.Usage})
	calls := 0
	for _, item := range items {
		if item.Type != messages.ItemCall {
			continue
		}
		calls++
		d.emit(messages.ToolRequested{Turn: t.ID, Step: t.Steps, Call: item.CallID, Tool: item.Name, Arguments: item.Arguments})
		d.refuseCall(item)
	}
	if calls == 0 {
		d.complete(items)
		return
	}
	d.advance()
}

// uniqueCalls gives every call an id that no other call of the turn has:
// some servers leave it empty or count from zero in each answer.
func (d *decision) uniqueCalls(items []messages.Item) []messages.Item {
	used := slices.Clone(d.s.Turn.used)
	items = slices.Clone(items)
	for i := range items {
		if items[i].Type != messages.ItemCall {
			continue
		}
		id := items[i].CallID
		if id == "" {
			id = "call"
		}
		for n, base := 2, id; slices.Contains(used, id) || items[i].CallID == "" && id == "call"; n++ {
			id = messages.CallID(fmt.Sprintf("%s_%d", base, n-1))
		}
		items[i].CallID = id
		used = append(used, id)
	}
	return items
}

// refuseCall fails a call that cannot run.
func (d *decision) refuseCall(item messages.Item) {
	t := d.s.Turn
	if _, ok := d.env.Definition.Classes[item.Name]; !ok {
		d.emit(messages.ToolFailed{Turn: t.ID, Call: item.CallID, Kind: "unknown_tool", Message: fmt.Sprintf("there is no tool named %q", item.Name)})
	} else if !json.Valid([]byte(item.Arguments)) {
		d.emit(messages.ToolFailed{Turn: t.ID, Call: item.CallID, Kind: "bad_arguments", Message: "the arguments are not valid JSON"})
	}
}

// complete ends the turn with the text of its last answer.
func (d *decision) complete(items []messages.Item) {
	t := d.s.Turn
	var text []string
	for _, item := range items {
		if item.Type == messages.ItemMessage || item.Type == messages.ItemRefusal {
			text = append(text, item.Content.Text())
		}
	}
	d.emit(messages.TurnCompleted{Turn: t.ID, Inputs: t.Inputs, Output: strings.Join(text, "\n"), Steps: t.Steps, Usage: t.Usage})
	d.startNext()
}

// advance starts the calls that have a slot, and goes on to the next step when
// every call has an outcome.
func (d *decision) advance() {
	t := d.s.Turn
	free := d.env.Definition.Parallel - t.count(Executing)
	for i := range t.Calls {
		if t.Calls[i].Status == Requested && free > 0 {
			d.startTool(&t.Calls[i], "")
			free--
		}
	}
	switch {
	case t.count(Executing)+t.count(Requested) > 0:
	case t.count(Unknown) > 0:
		d.emit(messages.TurnPaused{Turn: t.ID, Reason: "tool_unknown", Calls: t.waiting()})
	default:
		d.request(nil)
	}
}

// startTool intends the next attempt of a call. The class is the definition's
// at the first attempt; a tool that is gone by the next one keeps it.
func (d *decision) startTool(c *ToolCall, reason string) {
	t := d.s.Turn
	class := d.env.Definition.Classes[c.Tool]
	if class == "" {
		class = c.Class
	}
	d.emit(messages.ToolStarted{
		Turn: t.ID, Call: c.ID, Tool: c.Tool, Class: class,
		Key:     d.env.Agent.Full() + "/" + string(t.ID) + "/" + string(c.ID),
		Attempt: c.Attempt + 1, Reason: reason,
	})
}

func (d *decision) erred(o ModelErred) {
	t := d.s.Turn
	failed := messages.ModelFailed{
		Turn: t.ID, Step: t.Steps, Attempt: t.Model.Attempt, Call: o.Call,
		Kind: o.Kind, Message: o.Message, Status: o.Status, Shown: o.Shown, Usage: o.Usage,
	}
	if o.Temporary && t.Model.Failures+1 < d.env.Definition.MaxAttempts {
		delay := retryDelay(t.Model.Failures+1, o.RetryAfter, d.env.Jitter)
		at := d.env.Now.Add(delay).Round(0).UTC() // as the log will give it back
		failed.RetryAt = &at
		d.emit(failed)
		return
	}
	d.emit(failed)
	d.fail("model", o.Message)
}

// Retries of model calls: exponential with equal jitter (half of the delay is
// spread), never earlier than the server asked for, never later than an hour.
// See M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
const (
	retryBase = 500 * time.Millisecond
	retryMost = 30 * time.Second
	retryCap  = time.Hour
)

func retryDelay(failures int, after time.Duration, jitter float64) time.Duration {
	delay := min(retryBase<<min(failures-1, 16), retryMost)
	delay = delay/2 + time.Duration(jitter*float64(delay/2))
	return min(max(delay, after), retryCap)
}

func (d *decision) reconciled(o ToolReconciled) {
	t := d.s.Turn
	c := t.call(o.Call)
	if c == nil || c.Status != Executing || !d.s.lost[o.Call] {
		return
	}
	switch {
	case o.Done:
		d.emit(messages.ToolCompleted{Turn: t.ID, Call: c.ID, Output: o.Output, By: "reconcile"})
	case o.NotDone:
		d.startTool(c, "reconcile")
	default:
		d.emit(messages.ToolUnknown{Turn: t.ID, Call: c.ID, Reason: "its process was lost while it ran, and the tool cannot tell what became of it"})
	}
	d.advance()
}

// recover goes on after a crash or takeover, by what running twice means.
func (d *decision) recover() {
	t := d.s.Turn
	if t.Paused {
		return
	}
	if m := t.Model; m != nil {
		if m.RetryAt.IsZero() {
			d.restart(m)
		}
		return
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Status != Executing {
			continue
		}
		switch c.Class {
		case "pure", "keyed":
			d.runAgain(c)
		case "check":
			if d.s.lost == nil {
				d.s.lost = make(map[messages.CallID]bool)
			}
			d.s.lost[c.ID] = true
		default:
			d.emit(messages.ToolUnknown{Turn: t.ID, Call: c.ID, Reason: "its process was lost while it ran: it may or may not have had its effect"})
		}
	}
	d.advance()
}

// runAgain starts a lost call of class pure or keyed anew, unless it was lost
// too often.
func (d *decision) runAgain(c *ToolCall) {
	if c.Attempt <= maxRestarts {
		d.startTool(c, "restart")
		return
	}
	d.emit(messages.ToolFailed{
		Turn: d.s.Turn.ID, Call: c.ID, Kind: "restarts",
		Message: fmt.Sprintf("its process was lost %d times while it ran: it may or may not have had its effect", c.Attempt),
	})
}

func (d *decision) restart(m *ModelCall) {
	t := d.s.Turn
	d.emit(messages.ModelRestarted{Turn: t.ID, Step: t.Steps, Call: m.ID, Reason: "its process was lost before the answer was recorded"})
	if t.Model.Restarts > maxRestarts {
		d.fail("restarts", fmt.Sprintf("the model call was lost with its process %d times", t.Model.Restarts))
		return
	}
	d.requestStep(t.Steps, m.Attempt+1, nil)
}
