package projections

import (
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// Waits returns what the turn of the agent self and those below it wait for, as a parent is
// to know: at most messages.MaxWaits of it. It reports whether there is more.
func (w *Work) Waits(self messages.AgentID) (list []messages.Wait, more bool) {
	t := w.Turn
	if t == nil {
		return nil, false
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.ListsBelow() {
			list, more = append(list, c.Child.Waiting...), more || c.Child.More
		} else if wait, ok := c.wait(self); ok {
			list = append(list, wait)
		}
	}
	switch t.Paused() {
	case "", PausedApproval, PausedUnknown, PausedChild:
	default:
		list = append(list, messages.Wait{Agent: self.Full(), Turn: t.ID, Kind: messages.WaitPaused, Reason: t.whyPaused()})
	}
	if len(list) > messages.MaxWaits {
		list, more = list[:messages.MaxWaits], true
	}
	return list, more
}

// wait returns the entry of a call that a person must decide, and reports whether it is one.
func (c *CallState) wait(self messages.AgentID) (messages.Wait, bool) {
	kind := c.needs()
	if kind == "" {
		return messages.Wait{}, false
	}
	w := messages.Wait{
		Agent: self.Full(), Turn: c.Turn, Call: c.ID, Tool: c.Tool, Kind: kind,
		Arguments: beginning(c.Arguments, maxWaitText), ArgsHash: c.ArgsHash,
	}
	w.Cut = len(w.Arguments) < len(c.Arguments)
	if at := c.ExpiresAt; !at.IsZero() {
		w.ExpiresAt = &at
	}
	return w, true
}

// whyPaused returns what is known of the hook or the limit that has paused the turn.
func (t *TurnState) whyPaused() string {
	reason, why := t.Paused(), ""
	switch {
	case reason == PausedHook && t.Held != nil:
		why = t.Held.String()
	case t.Exceeded != nil:
		why = t.Exceeded.Message
	}
	if why != "" {
		reason += ": " + why
	}
	return beginning(reason, maxWaitText)
}

// maxWaitText is how many bytes of the arguments or the reason of a waiting call are sent to its
// agent's parent.
const maxWaitText = 2 << 10

// noteWaits has the parent of the running turn's task sent a report if the turn waits for
// something else, as of event n, than at the report before.
func (w *Work) noteWaits(n messages.EventNumber) {
	if w.Turn == nil || !w.Outbox.works() {
		return
	}
	waits, inputs := w.waitsKey(), w.TurnInputs()
	for i := range w.Outbox.Tasks {
		if task := &w.Outbox.Tasks[i]; task.End == nil && task.Waits != waits && slices.Contains(inputs, task.Input) {
			task.Waits = waits
			w.Outbox.report(task, n)
		}
	}
}

// waitsKey names everything that the turn waits for. Empty: nothing.
func (w *Work) waitsKey() string {
	list, more := w.Waits(messages.AgentID{})
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(w.Turn.Paused())
	if more {
		b.WriteString("\x00more")
	}
	for _, wait := range list {
		b.WriteString("\x00" + wait.Agent + "\x00" + string(wait.Turn) + "\x00" + string(wait.Call) + "\x00" + string(wait.Kind))
	}
	return b.String()
}
