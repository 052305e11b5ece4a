package projections

import "github.com/reprise-dev/reprise/messages"

// causedCall is a call of a tool, to explain its events.
type causedCall struct {
	ToolCall
	requested Cause
	turn      *causedTurn
	model     *causedModel // whose answer asked for it. Nil: none is known
	events    []Cause      // what happened to it, its request included
	left      int          // how many of them are not kept
	starts    []Cause
	unknown   messages.EventNumber // its newest tool.unknown
	decided   *Cause               // the newest decision about its outcome. Nil: none
}

// madeCall is what is kept of a call of a tool to compare it with others.
type madeCall struct {
	line    Cause // its tool.requested
	sum     int64 // as [ToolCall.Sum]
	outcome Outcome
	acted   bool                 // as [ToolCall.MayHaveActed]
	answer  messages.EventNumber // of the model that asked for it
	unknown messages.EventNumber // its newest tool.unknown
	decided *Cause               // the newest decision about its outcome. Nil: none
	turn    *causedTurn
}

// applyCall folds an event about a call of a tool.
func (c *Causes) applyCall(t *causedTurn, e *event) {
	call := t.call(e.Call)
	_, requested := e.Event.(messages.ToolRequested)
	switch {
	case requested, call == nil && e.Is(messages.OfTool):
		call = &causedCall{ToolCall: ToolCall{Turn: e.Turn, ID: e.Call}, requested: c.line(CauseBefore, e), turn: t, model: t.newestAnswer()}
		t.calls = append(t.calls, call)
	case call == nil:
		return
	}
	switch ev := e.Event.(type) {
	case messages.ChildWaiting, messages.ChildResumed: // they come often, and explain nothing
		return
	case messages.ChildSpawned:
		c.spawned = append(c.spawned, spawnedChild{c.line(CauseParent, e), ev.Child, call.answer()})
	}
	l := c.line(CauseBefore, e)
	if decisionOf(e.Event).Decision.Decision != "" || c.cause.Type == (messages.Decide{}).CommandType() {
		l.Relation = CauseDecided
	}
	call.fold(e, l)
	if call.Outcome.Final() && e.Is(messages.EndsTool) {
		l.Relation = CauseSaw
		t.results = append(t.results, l)
	}
}

// fold applies an event to the call. Only the beginning of an output is kept.
func (c *causedCall) fold(e *event, l Cause) {
	before := c.Attempt
	c.apply(e)
	c.Output = beginning(c.Output, MaxPreview)
	if c.events = append(c.events, l); len(c.events) > 2*maxLines {
		c.left += len(c.events) - maxLines
		c.events = append(c.events[:0], c.events[len(c.events)-maxLines:]...)
	}
	switch {
	case c.Attempt > before:
		c.starts = append(c.starts, l)
	case e.Is(messages.Lost):
		c.unknown = e.n
	}
	if l.Command == (messages.Decide{}).CommandType() {
		c.decided = &l
	}
}

// answer returns the answer that asked for the call. 0: it is not known.
func (c *causedCall) answer() messages.EventNumber {
	if c.model == nil {
		return 0
	}
	return c.model.ended.N
}

// made returns what is kept of the call.
func (c *causedCall) made() madeCall {
	l := c.requested
	l.Text = c.text()
	return madeCall{
		line: l, sum: c.Sum(), outcome: c.Outcome, acted: c.MayHaveActed(),
		answer: c.answer(), unknown: c.unknown, decided: c.decided, turn: c.turn,
	}
}
