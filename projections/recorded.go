package projections

import "github.com/reprise-dev/reprise/messages"

// RecordedCall is a call of a tool with all of its result.
type RecordedCall struct {
	ToolCall
	// Blob holds the output where it is too large for a frame. Nil: it is Output.
	Blob *messages.Blob
}

// HasResult reports whether the call was made, and what came of it is known.
func (c *RecordedCall) HasResult() bool {
	return c.Attempt > 0 && (c.Outcome == CallCompleted || c.Outcome == CallFailed)
}

// RecordedCalls are the calls of tools that an agent's models asked for, with their results. It
// may begin behind any event: calls that were asked for before are left out. The zero value has none.
type RecordedCalls struct {
	// List has the calls in the order in which they were asked for.
	List []RecordedCall

	origin
}

// Apply folds event number n.
func (r *RecordedCalls) Apply(n messages.EventNumber, ev messages.Event) {
	e := r.event(n, ev)
	if asked, ok := ev.(messages.ToolRequested); ok {
		r.List = append(r.List, RecordedCall{ToolCall: ToolCall{Turn: asked.Turn, ID: asked.Call, Outcome: CallRequested}})
	}
	c := r.Of(e.Turn, e.Call)
	if c == nil || c.Outcome.Final() {
		return
	}
	c.apply(e)
	c.Blob = resultOf(ev).blob
}

// Of returns the newest call of a turn with this id, valid until the next event; nil if there is
// none.
func (r *RecordedCalls) Of(turn messages.TurnID, call messages.CallID) *RecordedCall {
	if call == "" {
		return nil
	}
	return lastOf(r.List, func(c *RecordedCall) bool { return c.Turn == turn && c.ID == call })
}

// Results returns the calls that have a result, in their order, by what they ask for as [ToolCall.Asks]
// has it. They are valid until the next event.
func (r *RecordedCalls) Results() map[string][]*RecordedCall {
	results := make(map[string][]*RecordedCall)
	for i := range r.List {
		if c := &r.List[i]; c.HasResult() {
			asks := c.Asks()
			results[asks] = append(results[asks], c)
		}
	}
	return results
}
