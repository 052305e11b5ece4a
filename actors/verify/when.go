package verify

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// span returns the first events of rest, up to the next one that another outcome begins with. The
// first outcome has given these, or some of them.
func (s *stream) span(rest []messages.Event) []messages.Event {
	for i, ev := range rest {
		if i > 0 && s.begins(ev) {
			return rest[:i]
		}
	}
	return rest
}

// begins reports whether an event behind others of its frame is the first that comes of an outcome.
func (s *stream) begins(ev messages.Event) bool {
	switch ev := ev.(type) {
	case messages.ModelCompleted, messages.ModelFailed, messages.ChildReported, messages.TimerFired:
		return true
	case messages.ToolCompleted:
		return s.running(ev.Call) != nil
	case messages.ToolFailed:
		return s.running(ev.Call) != nil && ev.Kind != messages.ToolFailureInterrupted // which ends a turn
	}
	return false
}

// now returns when the events were decided. The frame has the time of its append; a timer that was
// set or ended has the time of the decision.
func (s *stream) now(span []messages.Event) time.Time {
	var least time.Time
	for _, ev := range span {
		switch ev := ev.(type) {
		case messages.TimerSet:
			return ev.Set
		case messages.TimerFired:
			least = later(least, s.ended(ev.Turn, ev.Timer, ev.Ran))
		case messages.TimerCancelled:
			least = later(least, s.ended(ev.Turn, ev.Timer, ev.Ran))
		}
	}
	if at := s.frame.Time; least.IsZero() || !at.Before(least) && at.Sub(least) < time.Millisecond {
		return at
	}
	return least
}

// ended returns when a timer ended that ran for so many milliseconds; zero if it is not set.
func (s *stream) ended(turn messages.TurnID, timer string, ran int64) time.Time {
	set := s.state.Timers.OfTurn(timer)
	if turn == "" {
		set = nil
		if sc := s.state.Timers.Schedule(timer); sc != nil {
			set = &sc.TimerSet
		}
	}
	if set == nil {
		return time.Time{}
	}
	return set.Set.Add(time.Duration(ran) * time.Millisecond)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
