package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Apply folds a frame that was read from the log. It never looks at a
// definition. It returns what Spend does.
func (s *State) Apply(f *messages.Frame) (evicted SpentID) {
	for _, ev := range f.Events {
		s.evolve(ev)
	}
	return s.Spend(f)
}

// Activate folds the takeover of the agent by a new owner and gives the events
// to append before anything else is done under that owner.
func (s *State) Activate(ev messages.AgentActivated) []messages.Event {
	s.evolve(ev)
	return []messages.Event{ev}
}

// Spend remembers the command that a frame spent; Apply does it for frames
// from the log, the shell for those it has just written. It returns the id
// that is no longer among the newest, zero if there is none: the shell must
// remember it for ever.
func (s *State) Spend(f *messages.Frame) (evicted SpentID) {
	if id, ok := SpentBy(f); ok {
		return s.spent.add(id)
	}
	return SpentID{}
}

// evolve folds the next event.
func (s *State) evolve(ev messages.Event) {
	s.Last++
	s.History.Apply(s.Last, ev)
	switch ev := ev.(type) {
	case messages.AgentConfigured:
		s.Definition = ev.Definition
	case messages.StatePatched:
		s.Data.Apply(s.Last, ev)
	case messages.InputAccepted:
		s.Queue = append(s.Queue, Queued{ev.Input, s.Last, ev.Options})
	case messages.TurnStarted:
		s.started(ev)
	case messages.TurnCompleted:
		s.ended(Ended{ID: ev.Turn})
	case messages.TurnFailed:
		s.ended(Ended{ID: ev.Turn, Failed: true, Reason: ev.Reason})
	case messages.TurnAborted:
		s.ended(Ended{ID: ev.Turn, Reason: ev.Reason})
	default:
		if s.Turn != nil {
			s.evolveTurn(ev)
		}
	}
}

func (s *State) started(ev messages.TurnStarted) {
	s.Turn = &Turn{ID: ev.Turn, Inputs: ev.Inputs, MaxSteps: ev.MaxSteps, Steps: ev.Steps}
	waiting := s.Queue[:0:0]
	for _, q := range s.Queue {
		if !contains(ev.Inputs, q.ID) {
			waiting = append(waiting, q)
		}
	}
	s.Queue = waiting
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func (s *State) ended(e Ended) {
	if s.Turn != nil {
		e.Steps, e.MaxSteps = s.Turn.Steps, s.Turn.MaxSteps
	}
	s.Ended, s.Turn, s.lost = &e, nil, nil
}

func (s *State) evolveTurn(ev messages.Event) {
	t := s.Turn
	switch ev := ev.(type) {
	case messages.TurnPaused:
		t.Paused = true
	case messages.TurnResumed:
		t.Paused = false
		if ev.MaxSteps != 0 {
			t.MaxSteps = ev.MaxSteps
		}
	case messages.ModelRequested:
		m := &ModelCall{ID: ev.Call, Attempt: ev.Attempt}
		if t.Model != nil && ev.Step == t.Steps {
			m.Failures, m.Restarts = t.Model.Failures, t.Model.Restarts
		}
		t.Model, t.Steps, t.Calls = m, ev.Step, nil
	case messages.ModelFailed:
		t.Usage = t.Usage.Add(ev.Usage)
		t.Model.failed(ev.RetryAt)
	case messages.ModelRestarted:
		t.Model.restarted()
	case messages.ModelCompleted:
		t.Usage = t.Usage.Add(ev.Usage)
		t.Model = nil
	default:
		s.evolveCall(ev)
	}
}

// failed counts an attempt that failed. A stream from elsewhere may tell of
// one that was never requested: m is nil then.
func (m *ModelCall) failed(retryAt *time.Time) {
	if m == nil {
		return
	}
	m.Failures++
	if retryAt != nil {
		m.RetryAt = *retryAt
	}
}

// restarted counts an attempt that was lost, on the same terms.
func (m *ModelCall) restarted() {
	if m != nil {
		m.Restarts++
	}
}

func (s *State) evolveCall(ev messages.Event) {
	t := s.Turn
	switch ev := ev.(type) {
	case messages.ToolRequested:
		t.Calls = append(t.Calls, ToolCall{ID: ev.Call, Tool: ev.Tool, Arguments: ev.Arguments})
		t.used = append(t.used, ev.Call)
	case messages.ToolStarted:
		if c := t.call(ev.Call); c != nil {
			c.Status, c.Class, c.Key, c.Attempt = Executing, ev.Class, ev.Key, ev.Attempt
		}
		delete(s.lost, ev.Call)
	case messages.ToolUnknown:
		s.settle(ev.Call, Unknown)
	case messages.ToolCompleted:
		s.settle(ev.Call, Settled)
	case messages.ToolFailed:
		s.settle(ev.Call, Settled)
	case messages.ToolSkipped:
		s.settle(ev.Call, Settled)
	}
}

func (s *State) settle(id messages.CallID, status Status) {
	if c := s.Turn.call(id); c != nil {
		c.Status = status
	}
	delete(s.lost, id)
}

// call is the call of the newest step with this id; nil if there is none.
func (t *Turn) call(id messages.CallID) *ToolCall {
	for i := range t.Calls {
		if t.Calls[i].ID == id {
			return &t.Calls[i]
		}
	}
	return nil
}

// waiting are the calls that only a person can settle.
func (t *Turn) waiting() []messages.CallID {
	var ids []messages.CallID
	for _, c := range t.Calls {
		if c.Status == Unknown {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// count is how many calls have the status.
func (t *Turn) count(status Status) int {
	n := 0
	for _, c := range t.Calls {
		if c.Status == status {
			n++
		}
	}
	return n
}
