package turn_test

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// later is an input that is to come later, or again and again.
func (s *sim) later() messages.Input {
	in := s.input()
	in.Name = s.one("", "", "daily", "poll")
	at := s.env.Now.Add(time.Duration(s.r.IntN(100)-10) * time.Second)
	switch s.r.IntN(4) {
	case 0:
		in.In = messages.Span(time.Duration(s.r.IntN(100)) * time.Second)
	case 1:
		in.At = &at
	case 2:
		in.Cron, in.Deadline = s.one("* * * * *", "*/7 * * * *", "@hourly", "0 9 * *"), nil
	default:
		in.Cron, in.Zone, in.Deadline = "30 2 * * *", s.one("Europe/Berlin", "UTC", "Nowhere"), nil
	}
	if s.plain&withSchedules != 0 {
		in.Schedule = messages.Schedule{}
	}
	return in
}

// anyTimer is usually one that is set.
func (s *sim) anyTimer() string {
	var timers []string
	for _, sc := range s.live.Timers.Scheduled {
		timers = append(timers, sc.Timer)
	}
	if len(timers) == 0 || s.chance(8) {
		return "id0"
	}
	return s.one(timers...)
}

// scheduleFacts are the agent's own timers, as the events record them.
type scheduleFacts struct {
	set map[string]scheduled
	// fired is the one that fired in this segment and whose input must follow, and
	// again whether it must be set again before.
	fired  *messages.TimerFired
	policy messages.Policy // of its input
	again  string
}

type scheduled struct {
	messages.TimerSet
	n     messages.EventNumber
	input messages.Input
}

func (c *checker) scheduleEvent(ev messages.Event) {
	f := &c.schedules
	if f.set == nil {
		f.set = map[string]scheduled{}
	}
	switch ev := ev.(type) {
	case messages.TimerSet:
		was, known := f.set[ev.Timer]
		sc := scheduled{TimerSet: ev, n: c.n}
		if ev.Input == nil {
			c.must(known && f.again == ev.Timer && was.Cron == ev.Cron && was.Zone == ev.Zone && ev.At.After(was.At), "a timer was set again that had not fired, or for another time")
			c.must(c.cmd == nil || ev.At.After(c.s.env.Now), "a timer was set for a time that has passed")
			f.again, sc.input = "", was.input
		} else {
			in, ok := c.cmd.(messages.Input)
			c.must(!known && (c.cmd == nil || ok && in.Scheduled() && in.ID == ev.Input.ID && in.Cron == ev.Cron), "a timer was set without a command, or twice")
			sc.input = *ev.Input
		}
		f.set[ev.Timer] = sc
	case messages.TimerFired:
		sc, known := f.set[ev.Timer]
		due, ok := c.cmd.(turn.TimerDue)
		c.must(known && (c.cmd == nil || ok && due.Turn == "" && due.Timer == ev.Timer), "a scheduled input came that was not due, or was cancelled")
		want := sc.input.ID
		if sc.Cron != "" {
			want, f.again = messages.TimerInputID(ev.Timer, sc.n), ev.Timer
		} else {
			delete(f.set, ev.Timer)
		}
		c.must(ev.Input == want, "a scheduled input has another id")
		if ev.Refused == "" {
			f.fired, f.policy = &ev, sc.input.Policy
		}
	case messages.TimerCancelled:
		_, known := f.set[ev.Timer]
		_, cancel := c.cmd.(messages.Cancel)
		_, clear := c.cmd.(messages.Clear)
		_, end := c.cmd.(messages.Delete)
		c.must(known && (c.cmd == nil || cancel || clear || end), "a timer was cancelled that was not set, or without a command")
		delete(f.set, ev.Timer)
	}
}

// came notes that an input was accepted, and reports whether a timer brought it.
func (f *scheduleFacts) came(c *checker, ev messages.InputAccepted) bool {
	if f.fired == nil {
		return false
	}
	c.must(ev.Policy == f.policy, "a scheduled input has another policy")
	c.must(f.fired.Input == ev.Input && f.again == "", "a timer fired, and another input came, or it was not set again")
	f.fired = nil
	return true
}

// whole checks that nothing is left half done.
func (f *scheduleFacts) whole(c *checker) {
	c.must(f.fired == nil && f.again == "", "a timer fired without its input, or is not set again")
}

// wait checks that the next timer is waited for, and returns the other effects.
func (f *scheduleFacts) wait(c *checker, live *turn.State, effects []turn.Effect) (rest []turn.Effect) {
	c.must(len(live.Timers.Scheduled) == len(f.set), "the state has other timers of the agent")
	var next time.Time
	for _, sc := range f.set {
		if next.IsZero() || sc.At.Before(next) {
			next = sc.At
		}
	}
	waits := 0
	for _, e := range effects {
		if e.Do != turn.Wait || e.Turn != "" {
			rest = append(rest, e)
			continue
		}
		waits++
		sc, known := f.set[e.Timer]
		c.must(known && sc.At.Equal(e.Until) && e.Until.Equal(next), "a wait for another timer than the next one")
	}
	c.must(waits == min(len(f.set), 1), "there is no wait for the agent's next timer")
	due := live.Due()
	c.must(next.IsZero() || !due.IsZero() && !due.After(next), "the agent is not woken for its next timer")
	return slices.Clip(rest)
}
