package turn_test

import (
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// checker knows from the events alone what is allowed.
type checker struct {
	s      *sim
	inputs map[string]int // of accepted inputs: how many terminal events
	open   *openTurn
	keys   map[string]messages.CallID // of tool.started, with the turn
	steps  map[messages.TurnID]int    // of ended turns
}

// openTurn is a turn without its terminal event.
type openTurn struct {
	id       messages.TurnID
	inputs   []string
	steps    int
	most     int
	model    messages.CallID // that is awaited
	waiting  bool            // for its next attempt
	attempt  int
	step     int
	calls    []messages.CallID
	settled  map[messages.CallID]bool
	running  map[messages.CallID]int // attempt
	attempts map[messages.CallID]int
	paused   bool
}

func newChecker(s *sim) checker {
	return checker{s: s, inputs: map[string]int{}, keys: map[string]messages.CallID{}, steps: map[messages.TurnID]int{}}
}

func (c *checker) must(ok bool, what string, n messages.EventNumber) {
	if !ok {
		c.s.fail("at event %d: %s", n, what)
	}
}

// event holds the next event against those before it.
func (c *checker) event(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		_, known := c.inputs[ev.Input]
		c.must(!known, "an input was accepted twice", n)
		c.inputs[ev.Input] = 0
		c.must((ev.Disposition == messages.Started) == (c.open == nil), "the disposition is wrong", n)
	case messages.TurnStarted:
		c.must(c.open == nil, "two turns at once", n)
		for _, id := range ev.Inputs {
			ended, accepted := c.inputs[id]
			c.must(accepted && ended == 0, "a turn for an input that was not accepted or has ended", n)
		}
		c.must(ev.Continues == "" || ev.Steps <= c.steps[ev.Continues], "steps were invented", n)
		c.open = &openTurn{id: ev.Turn, inputs: ev.Inputs, steps: ev.Steps, most: ev.MaxSteps}
	case messages.TurnCompleted:
		c.ended(n, ev.Turn, ev.Inputs, ev.Steps)
	case messages.TurnFailed:
		c.ended(n, ev.Turn, ev.Inputs, ev.Steps)
	case messages.TurnAborted:
		c.ended(n, ev.Turn, ev.Inputs, ev.Steps)
	case messages.AgentCreated:
		c.must(n == 1, "created twice", n)
	case messages.AgentConfigured, messages.AgentActivated, messages.StatePatched, messages.CommandNoop:
	default:
		c.must(c.open != nil, "an event of no turn", n)
		c.model(n, ev)
	}
}

// ended closes the turn: every call has its result, every input its end.
func (c *checker) ended(n messages.EventNumber, id messages.TurnID, inputs []string, steps int) {
	o := c.open
	c.must(o != nil && o.id == id && slices.Equal(o.inputs, inputs), "a terminal event of another turn", n)
	c.must(len(o.settled) == len(o.calls), "a turn ended with a call that has no result", n)
	c.must(steps == o.steps && steps <= o.most, "the steps are miscounted", n)
	for _, id := range inputs {
		c.inputs[id]++
		c.must(c.inputs[id] == 1, "an input ended twice", n)
	}
	c.steps[id] = steps
	c.open = nil
}

func (c *checker) model(n messages.EventNumber, ev messages.Event) {
	o := c.open
	switch ev := ev.(type) {
	case messages.ModelRequested:
		c.must(ev.Turn == o.id && !o.paused, "a request of another or paused turn", n)
		c.must(len(o.settled) == len(o.calls), "a model was asked before every call had its result", n)
		if ev.Attempt == 1 {
			o.steps++
		}
		c.must(ev.Step == o.steps && o.steps <= o.most, "the steps are miscounted", n)
		o.model, o.attempt, o.step, o.waiting = ev.Call, ev.Attempt, ev.Step, false
		o.calls, o.settled, o.running, o.attempts = nil, map[messages.CallID]bool{}, map[messages.CallID]int{}, map[messages.CallID]int{}
		c.must(ev.Request == string(c.s.live.History.Digest(ev.Definition, ev.Instructions)), "the request's digest is not of the history", n)
		c.history(n)
	case messages.ModelCompleted:
		c.must(ev.Call == o.model && !o.waiting, "an answer that nobody awaited", n)
		o.model = ""
	case messages.ModelFailed:
		c.must(ev.Call == o.model && !o.waiting, "a failure that nobody awaited", n)
		o.waiting = ev.RetryAt != nil
	case messages.ModelRestarted:
		c.must(ev.Call == o.model && !o.waiting, "a restart of nothing", n)
	case messages.TurnPaused:
		c.must(!o.paused && len(o.running) == 0 && len(ev.Calls) > 0, "a pause that waits for nobody", n)
		o.paused = true
	case messages.TurnResumed:
		c.must(o.paused, "resumed what was not paused", n)
		o.paused = false
	default:
		c.tool(n, ev)
	}
}

func (c *checker) tool(n messages.EventNumber, ev messages.Event) {
	o := c.open
	settle := func(call messages.CallID) {
		c.must(slices.Contains(o.calls, call) && !o.settled[call], "a second result, or one of no call", n)
		o.settled[call] = true
		delete(o.running, call)
	}
	switch ev := ev.(type) {
	case messages.ToolRequested:
		c.must(!slices.Contains(o.calls, ev.Call) && ev.Call != "", "two calls of one id", n)
		o.calls = append(o.calls, ev.Call)
	case messages.ToolStarted:
		_, runs := o.running[ev.Call]
		c.must(slices.Contains(o.calls, ev.Call) && !o.settled[ev.Call] && !o.paused, "a start of no call", n)
		c.must(!runs || ev.Reason == "restart" || ev.Reason == "reconcile", "a call was started twice", n)
		c.must(ev.Attempt == o.attempts[ev.Call]+1, "the attempts are miscounted", n)
		c.must(ev.Attempt == 1 || ev.Class != "once" || ev.Reason == "decision", "a tool of class once ran twice unasked", n)
		c.must(runs || len(o.running) < c.s.env.Definition.Parallel || c.s.past, "too many tools at once", n)
		known, seen := c.keys[ev.Key]
		c.must(seen == (ev.Attempt > 1) && (!seen || known == ev.Call), "the key is not the call's own", n)
		c.keys[ev.Key], o.running[ev.Call], o.attempts[ev.Call] = ev.Call, ev.Attempt, ev.Attempt
	case messages.ToolUnknown:
		c.must(o.running[ev.Call] > 0, "an unknown outcome of what did not run", n)
		delete(o.running, ev.Call)
	case messages.ToolCompleted:
		c.must(o.running[ev.Call] > 0 || ev.By == "decision", "a result of what did not run", n)
		settle(ev.Call)
	case messages.ToolFailed:
		settle(ev.Call)
	case messages.ToolSkipped:
		c.must(o.attempts[ev.Call] == 0, "skipped what had run", n)
		settle(ev.Call)
	}
}

// effects checks that every effect was intended and is still awaited, and that
// a turn never waits for nothing.
func (c *checker) effects() {
	live, o := c.s.live, c.open
	n := live.Last
	effects := live.Effects()
	c.must((live.Turn != nil) == (o != nil), "the state has another turn", n)
	c.must(live.Turn != nil || len(live.Queue) == 0, "inputs wait for an idle agent", n)
	if o == nil {
		c.must(len(effects) == 0, "effects of no turn", n)
		return
	}
	c.must(live.Turn.ID == o.id && live.Turn.Steps == o.steps && (live.Turn.Paused != "") == o.paused, "the state has another turn", n)
	c.must(o.paused == (len(effects) == 0), "a turn that waits for nothing, or works while paused", n)
	models := 0
	for _, e := range effects {
		switch e.Do {
		case turn.CallModel:
			models++
			c.must(e.Call == o.model && e.Attempt == o.attempt && !o.waiting, "a model call that was not intended", n)
		case turn.Wait:
			models++
			c.must(e.Timer == "retry:"+string(o.model) && o.waiting && !e.Until.IsZero(), "a wait that was not intended", n)
		default:
			c.must(o.running[e.Call] == e.Attempt, "a tool that was not started", n)
		}
		c.must(e.Turn == o.id, "an effect of another turn", n)
	}
	c.must(models+len(o.running) == len(effects), "an intended effect is not listed", n)
}

// history checks what the model is about to be given: after the calls of an
// answer come their results, in the same order, and nothing before them.
func (c *checker) history(n messages.EventNumber) {
	var calls []messages.CallID
	for _, item := range c.s.live.History.Items() {
		switch item.Type {
		case messages.ItemCall:
			calls = append(calls, item.CallID)
		case messages.ItemCallOutput:
			c.must(len(calls) > 0 && calls[0] == item.CallID, "a result out of order", n)
			calls = calls[1:]
		default:
			c.must(len(calls) == 0 || item.Role == messages.RoleAssistant, "an orphan call", n)
		}
	}
	c.must(len(calls) == 0, "an orphan call", n)
}

// drained checks that every accepted input has ended.
func (c *checker) drained() {
	for id, ended := range c.inputs {
		if ended != 1 {
			c.s.fail("input %s has %d terminal events", id, ended)
		}
	}
}
