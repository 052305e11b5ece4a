package metrics

import (
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Observer returns an observer that counts what happens and passes it on to next.
func (m *Metrics) Observer(next actors.Observer) actors.Observer { return observed{next, m} }

type observed struct {
	actors.Observer
	m *Metrics
}

// Committed counts a frame's events and passes it on.
func (o observed) Committed(c actors.Commit) {
	k := o.m.kind(c.Agent.Kind)
	for _, e := range c.Frame.Events {
		o.m.ofAgent(k, e)
		o.m.ofCalls(c.Agent, e, c.Frame.Time)
	}
	o.Observer.Committed(c)
}

// Fenced counts an agent that met a newer owner and passes it on.
func (o observed) Fenced(a messages.AgentID, newer messages.Epoch) {
	o.m.fenced.Inc()
	o.m.underWay[a.Partition()].forget(a)
	o.Observer.Fenced(a, newer)
}

// ofAgent counts what an event says of inputs, turns and tools.
func (m *Metrics) ofAgent(k *ofKind, e messages.Event) {
	if c := k.events[e.EventType()]; c != nil {
		c.Inc()
	}
	if c := k.inputs[messages.DispositionOf(e)]; c != nil {
		c.Inc()
	}
}

// ofCalls counts what an event says of calls of models. The event that ends a call
// does not name the model as the configuration does; the one that began it did.
func (m *Metrics) ofCalls(a messages.AgentID, e messages.Event, at time.Time) {
	w := &m.underWay[a.Partition()]
	traits := messages.TraitsOf(e.EventType())
	is := func(t messages.Trait) bool { return traits&t != 0 }
	which, outcome := turnCall, "completed"
	if is(messages.Summarizes) {
		which = summaryCall
	}
	switch {
	case is(messages.Failed):
		outcome = "failed"
	case is(messages.Lost):
		outcome = "lost"
	}
	switch {
	case is(messages.BeginsModelCall):
		w.begin(a, which, call{messages.ModelOf(e), at})
	case is(messages.EndsModelCall) && messages.CallOf(e) != "": // a history may be compacted without a call
		used, cost, expected := projections.UsedBy(e)
		m.ended(w.end(a, which), outcome, at, used, cost+expected.Cost)
	case is(messages.EndsTurn):
		w.end(a, turnCall)
	}
}

// ended counts a call of a model. One whose beginning was not seen here was another
// node's.
func (m *Metrics) ended(c call, outcome string, at time.Time, used messages.Usage, cost messages.Cost) {
	of := m.model(c.model)
	of.calls[outcome].Inc()
	if outcome != "lost" && !c.began.IsZero() {
		of.took.Observe(at.Sub(c.began).Seconds())
	}
	used = used.Clamped()
	of.input.Add(float64(used.Input))
	of.output.Add(float64(used.Output))
	of.cached.Add(float64(used.Cached))
	of.thought.Add(float64(used.Reasoning))
	of.cost.Add(max(0, float64(cost)/nanos))
}

// nanos is how many units of messages.Cost are a whole one.
const nanos = 1e9

// underWay are the calls of models of a partition's agents whose end was not seen.
type underWay struct {
	mu    sync.Mutex
	calls map[messages.AgentID]calls
}

// calls are an agent's: one of its turn, one for a summary. Either may be missing.
type calls [2]call

type call struct {
	model string
	began time.Time
}

const (
	turnCall = iota
	summaryCall
)

func (w *underWay) begin(a messages.AgentID, which int, c call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.calls[a]
	of[which] = c
	w.calls[a] = of
}

// end takes a call out; the zero one if its beginning was not seen.
func (w *underWay) end(a messages.AgentID, which int) (c call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, known := w.calls[a]
	if !known {
		return call{}
	}
	c, of[which] = of[which], call{}
	if of == (calls{}) {
		delete(w.calls, a)
	} else {
		w.calls[a] = of
	}
	return c
}

func (w *underWay) forget(a messages.AgentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, a)
}

func (w *underWay) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.calls)
}
