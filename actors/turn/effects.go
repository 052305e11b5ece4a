package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Effect is something that must be done in the world now that the state is
// recorded. Equal effects are the same one: the shell begins those that are
// new, leaves those it has begun, and cancels those that are listed no more.
type Effect struct {
	Do      Action
	Turn    messages.TurnID
	Call    messages.CallID
	Attempt int
	// Until is when a Wait ends.
	Until time.Time
}

// Action says what an Effect is.
type Action int

// The actions. Each is answered by an outcome that names the call.
const (
	CallModel Action = iota + 1 // ModelAnswered or ModelErred
	Wait                        // RetryDue, at Until
	RunTool                     // ToolReturned or ToolErred
	Reconcile                   // ToolReconciled
)

// Effects lists what the state wants done, in a stable order.
func (s *State) Effects() []Effect {
	t := s.Turn
	if t == nil {
		return nil
	}
	var list []Effect
	if m := t.Model; m != nil {
		e := Effect{Do: CallModel, Turn: t.ID, Call: m.ID, Attempt: m.Attempt}
		if !m.RetryAt.IsZero() {
			e.Do, e.Until = Wait, m.RetryAt
		}
		list = append(list, e)
	}
	for _, c := range t.Calls {
		if c.Status != Executing {
			continue
		}
		e := Effect{Do: RunTool, Turn: t.ID, Call: c.ID, Attempt: c.Attempt}
		if s.lost[c.ID] {
			e.Do = Reconcile
		}
		list = append(list, e)
	}
	return list
}

// Phase says what the agent is doing, in the words of its headers.
func (s *State) Phase() string {
	switch {
	case s.Turn == nil:
		return "idle"
	case s.Turn.Paused:
		return "paused"
	}
	return "running"
}

// Due is the state's next timer; zero if it has none.
func (s *State) Due() time.Time {
	if s.Turn != nil && s.Turn.Model != nil {
		return s.Turn.Model.RetryAt
	}
	return time.Time{}
}

// Open says that the agent owes work and must be activated even if nobody asks.
func (s *State) Open() bool { return s.Turn != nil && !s.Turn.Paused }
