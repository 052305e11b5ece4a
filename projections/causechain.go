package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// maxLines is the most lines of one relation in the chain of an agent, and maxContinued the most turns
// that are followed back from one that continues another.
const (
	maxLines     = 20
	maxContinued = 8
)

// explain sets the chain of the event, the newest line first.
func (c *Causes) explain(e *event) {
	relation := CauseEvent
	if c.N == 0 {
		relation = CauseParent
	}
	x := &explained{lines: []Cause{c.line(relation, e)}}
	c.because(x, e)
	slices.SortStableFunc(x.lines, newestFirst)
	c.chain, c.parent, c.resends = x.lines, x.parent, x.resends
}

// explained is a chain of causes in the making.
type explained struct {
	lines   []Cause
	parent  *messages.Parent
	resends *causedInput
}

// add adds lines, the newest first, that are older than the event. An event has one line.
func (x *explained) add(lines ...Cause) {
	for _, l := range lines {
		known := func(k Cause) bool { return k.N == l.N }
		if l.N != 0 && l.N < x.lines[0].N && !slices.ContainsFunc(x.lines, known) {
			x.lines = append(x.lines, l)
		}
	}
}

// newest adds the newest of some lines, which are the oldest first. left is how many there were besides.
func (x *explained) newest(lines []Cause, left int) {
	if more := len(lines) - maxLines; more > 0 {
		lines, left = lines[more:], left+more
	}
	before := len(x.lines)
	for _, l := range slices.Backward(lines) {
		x.add(l)
	}
	if len(x.lines) > before {
		x.lines[len(x.lines)-1].More = left
	}
}

// because adds what explains an event.
func (c *Causes) because(x *explained, e *event) {
	if set, is := c.timerOf(e); is {
		x.add(set)
	}
	t := c.turnOf(e)
	if t == nil {
		c.becauseOfInputs(x, e)
		return
	}
	if call := t.call(callOf(e)); call != nil {
		c.call = call
		x.call(call)
	} else if m := t.model(e.Call); m != nil {
		x.model(t, m)
	} else {
		if s := c.spawn(e); s != nil {
			x.add(s.Cause)
		}
		x.add(t.newest)
		x.answer(t, t.newestAttempt())
	}
	x.turn(t)
}

// callOf returns the call that an event is about: that which it names, or the first one that a pause
// waits for.
func callOf(e *event) messages.CallID {
	if paused, ok := e.Event.(messages.TurnPaused); ok && len(paused.Calls) > 0 {
		return paused.Calls[0]
	}
	return e.Call
}

// timerOf returns what set the timer that an event is about, and reports whether it is about one.
func (c *Causes) timerOf(e *event) (set Cause, is bool) {
	switch ev := e.Event.(type) {
	case messages.TimerFired:
		return c.fired.set, true
	case messages.TimerCancelled:
		set = c.timers[timerName{ev.Turn, ev.Timer}]
		return set, true
	}
	return Cause{}, false
}

// becauseOfInputs adds the inputs that an event of no turn names.
func (c *Causes) becauseOfInputs(x *explained, e *event) {
	for _, id := range messages.InputsOf(e.Event) {
		if in := c.inputs[id]; in != nil {
			x.input(in)
		}
	}
	if recalled, ok := e.Event.(messages.InputRecalled); ok {
		x.parent = &recalled.Parent
	}
}

// spawn returns the child.spawned of the call that an event names; nil if there is none.
func (c *Causes) spawn(e *event) *spawnedChild {
	return lastOf(c.spawned, func(s *spawnedChild) bool { return e.Call != "" && s.Turn == e.Turn && s.Call == e.Call })
}

// call adds what happened to a call, and the answer that asked for it.
func (x *explained) call(call *causedCall) {
	x.newest(call.events, call.left)
	x.answer(call.turn, call.model)
}

// answer adds the answer of a model, and its call. m may be nil.
func (x *explained) answer(t *causedTurn, m *causedModel) {
	if m != nil {
		x.add(m.ended)
		x.model(t, m)
	}
}

// model adds a model call, the attempts before it, and what it was the first to include.
func (x *explained) model(t *causedTurn, m *causedModel) {
	x.add(m.begun)
	var before []Cause
	for _, other := range t.models {
		if other != m && other.step == m.step && other.begun.N < m.begun.N {
			l := other.ended
			l.Relation = CauseBefore
			before = append(before, l)
		}
	}
	x.newest(before, 0)
	x.newest(m.saw, 0)
}

// turn adds the start of a turn and its inputs, and those of the turns that it continues.
func (x *explained) turn(t *causedTurn) {
	for range maxContinued {
		x.add(t.started)
		inputs := t.inputs
		more := max(0, len(inputs)-maxLines)
		for _, in := range slices.Backward(inputs[more:]) {
			x.input(in)
		}
		x.lines[len(x.lines)-1].More += more
		if t.continues == nil {
			return
		}
		t = t.continues
		x.add(t.newest)
	}
}

// input adds an input, what brought it, and an earlier one of the same content.
func (x *explained) input(in *causedInput) {
	x.add(in.Cause, in.fired, in.set)
	if in.resends != nil {
		x.resends = in
		l := in.resends.Cause
		l.Relation = CauseRepeats
		x.add(l)
	}
	if x.parent == nil {
		x.parent = in.parent
	}
}
