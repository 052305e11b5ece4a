package metrics

import (
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// Observer gives next, with what it is told counted before.
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
	switch e := e.(type) {
	case messages.AgentActivated:
		k.activated.Inc()
	case messages.InputAccepted:
		if c := k.inputs[string(e.Disposition)]; c != nil {
			c.Inc()
		}
	case messages.TurnStarted:
		k.began.Inc()
	case messages.TurnPaused:
		k.paused.Inc()
	case messages.TurnCompleted:
		k.ended["completed"].Inc()
	case messages.TurnFailed:
		k.ended["failed"].Inc()
	case messages.TurnAborted:
		k.ended["aborted"].Inc()
	case messages.ToolStarted:
		k.toolStarts.Inc()
	case messages.ToolCompleted:
		k.tools["completed"].Inc()
	case messages.ToolFailed:
		k.tools["failed"].Inc()
	case messages.ToolDenied:
		k.tools["denied"].Inc()
	case messages.ToolSkipped:
		k.tools["skipped"].Inc()
	case messages.ToolUnknown:
		k.tools["unknown"].Inc()
	case messages.ApprovalRequested:
		k.asked.Inc()
	case messages.HistoryCompacted:
		k.compacts.Inc()
	}
}

// ofCalls counts what an event says of calls of models. The event that ends a call
// does not name the model as the configuration does; the one that began it did.
func (m *Metrics) ofCalls(a messages.AgentID, e messages.Event, at time.Time) {
	w := &m.underWay[a.Partition()]
	switch e := e.(type) {
	case messages.ModelRequested:
		w.begin(a, turnCall, call{e.Model, at})
	case messages.ModelCompleted:
		m.ended(w.end(a, turnCall), "completed", at, e.Usage, e.Cost)
	case messages.ModelFailed:
		m.ended(w.end(a, turnCall), "failed", at, e.Usage, e.Cost)
	case messages.ModelRestarted:
		m.ended(w.end(a, turnCall), "lost", at, messages.Usage{}, 0)
	case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
		w.end(a, turnCall)
	case messages.CompactionRequested:
		w.begin(a, summaryCall, call{e.Model, at})
	case messages.CompactionFailed:
		m.ended(w.end(a, summaryCall), "failed", at, e.Usage, e.Cost)
	case messages.HistoryCompacted:
		if e.How == messages.CompactSummary {
			m.ended(w.end(a, summaryCall), "completed", at, e.Usage, e.Cost)
		}
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
