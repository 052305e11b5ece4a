package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// Waiting is a call that a person must settle.
type Waiting struct {
	Call   messages.CallID `json:"call"`
	Turn   messages.TurnID `json:"turn"`
	Tool   string          `json:"tool,omitempty"`
	Reason string          `json:"reason"`
}

// Queue is what an agent has yet to begin and what it waits for: accepted
// inputs without a turn, and calls whose outcome only a person can tell. The
// zero value is an agent with nothing to do.
type Queue struct {
	inputs  []string
	waiting []Waiting
	started []messages.ToolStarted // calls without an outcome
}

// Apply folds event number n.
func (q *Queue) Apply(_ messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		q.inputs = append(q.inputs, ev.Input)
	case messages.TurnStarted:
		q.drop(ev.Inputs)
	case messages.ToolStarted:
		q.settle(ev.Turn, ev.Call)
		q.started = append(q.started, ev)
	case messages.ToolUnknown:
		tool := q.settle(ev.Turn, ev.Call)
		q.waiting = append(q.waiting, Waiting{Call: ev.Call, Turn: ev.Turn, Tool: tool, Reason: ev.Reason})
	case messages.ToolCompleted:
		q.settle(ev.Turn, ev.Call)
	case messages.ToolFailed:
		q.settle(ev.Turn, ev.Call)
	case messages.ToolSkipped:
		q.settle(ev.Turn, ev.Call)
	case messages.TurnCompleted:
		q.ended(ev.Turn, ev.Inputs)
	case messages.TurnFailed:
		q.ended(ev.Turn, ev.Inputs)
	case messages.TurnAborted:
		q.ended(ev.Turn, ev.Inputs)
	}
}

// settle forgets a turn's call and says which tool it ran.
func (q *Queue) settle(turn messages.TurnID, call messages.CallID) (tool string) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w Waiting) bool { return w.Turn == turn && w.Call == call })
	q.started = slices.DeleteFunc(q.started, func(s messages.ToolStarted) bool {
		if s.Turn == turn && s.Call == call {
			tool = s.Tool
			return true
		}
		return false
	})
	return tool
}

func (q *Queue) ended(turn messages.TurnID, inputs []string) {
	q.drop(inputs)
	q.waiting = slices.DeleteFunc(q.waiting, func(w Waiting) bool { return w.Turn == turn })
	q.started = slices.DeleteFunc(q.started, func(s messages.ToolStarted) bool { return s.Turn == turn })
}

func (q *Queue) drop(inputs []string) {
	for _, id := range inputs {
		if i := slices.Index(q.inputs, id); i >= 0 {
			q.inputs = slices.Delete(q.inputs, i, i+1)
		}
	}
}

// Inputs is the ids of accepted inputs without a turn, oldest first.
func (q *Queue) Inputs() []string { return slices.Clone(q.inputs) }

// Waiting is the calls that a person must settle, oldest first.
func (q *Queue) Waiting() []Waiting { return slices.Clone(q.waiting) }
