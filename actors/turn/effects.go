package turn

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Effect is something to do outside of the state, now that its events are appended. Equal effects
// are the same one: the caller begins those that are new, leaves those that it has begun, and
// cancels those that are not listed any more.
type Effect struct {
	Do      Action
	Turn    messages.TurnID
	Call    messages.CallID
	Attempt int
	// Until is when a Wait for Timer ends.
	Until time.Time
	Timer string
	// Point is where hooks are asked.
	Point Point
	// ID is that of the message to send.
	ID string
}

// Action is what an Effect does.
type Action int

// The actions. Each is answered by an outcome that names the call, the timer, the
// point or the message.
const (
	CallModel Action = iota + 1 // ModelAnswered or ModelErred
	Wait                        // TimerDue, at Until
	RunTool                     // ToolReturned
	Reconcile                   // ToolReconciled
	AskHooks                    // HooksAsked
	Begin                       // Continue
	Send                        // MessageStored, unless the message is sent again
	Summarize                   // Summarized or ModelErred, not before Until
)

// Effects lists the effects that must be under way, in a stable order.
func (s *State) Effects() []Effect {
	var list []Effect
	t := s.Turn
	if t == nil && len(s.Inputs.Queued) > 0 {
		list = append(list, Effect{Do: Begin})
	}
	if t != nil {
		list = s.turnEffects(t)
	}
	list = append(list, s.sends()...)
	if c := s.Summary; c != nil {
		e := Effect{Do: Summarize, Turn: c.Turn, Call: c.Call, Attempt: c.Attempt}
		if c.NotBefore != nil {
			e.Until = *c.NotBefore
		}
		list = append(list, e)
	}
	if sc := s.Timers.Next(); sc != nil { // one at a time: there may be many
		list = append(list, Effect{Do: Wait, Timer: sc.Timer, Until: sc.At})
	}
	return list
}

// Due returns the outcome of a Wait.
func (e Effect) Due() TimerDue { return TimerDue{Turn: e.Turn, Timer: e.Timer, At: e.Until} }

func (s *State) turnEffects(t *projections.TurnState) (list []Effect) {
	if s.asking != "" {
		list = append(list, Effect{Do: AskHooks, Turn: t.ID, Point: s.asking})
	}
	if m := t.Model; m != nil && m.UnderWay() {
		list = append(list, Effect{Do: CallModel, Turn: t.ID, Call: m.ID, Attempt: m.Attempt})
	}
	for _, c := range t.Calls {
		if c.Outcome != projections.CallRunning || c.Child != nil {
			continue
		}
		e := Effect{Do: RunTool, Turn: t.ID, Call: c.ID, Attempt: c.Attempt}
		if s.isLost(&c) {
			e.Do = Reconcile
		}
		list = append(list, e)
	}
	for _, tm := range s.Timers.Turn {
		list = append(list, Effect{Do: Wait, Turn: t.ID, Timer: tm.Timer, Until: tm.At})
	}
	return list
}

// Phase returns what the agent is doing.
func (s *State) Phase() messages.AgentPhase {
	switch {
	case s.Life.Deleted != nil:
		return messages.PhaseDeleted
	case s.Turn == nil && len(s.Inputs.Queued) == 0:
		return messages.PhaseIdle
	case s.Turn != nil && s.Turn.Paused() != "":
		return messages.PhasePaused
	}
	return messages.PhaseRunning // or the next turn is about to begin
}

// Due returns the time of the state's next timer; zero if it has none.
func (s *State) Due() time.Time {
	var due time.Time
	if sc := s.Timers.Next(); sc != nil {
		due = sc.At
	}
	for _, tm := range s.Timers.Turn {
		if due.IsZero() || tm.At.Before(due) {
			due = tm.At
		}
	}
	return due
}

// Open reports whether the agent has work to do and must be activated even without a command.
func (s *State) Open() bool {
	return s.Phase() == messages.PhaseRunning || s.Summary != nil || len(s.sends()) > 0
}
