package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// later is an input that is to come on a schedule.
func later(id, text string, s messages.Schedule) messages.Input {
	in := say(id, text)
	in.Schedule = s
	return in
}

func after(d time.Duration) messages.Schedule { return messages.Schedule{In: messages.Span(d)} }

// An idle agent in memory brings its inputs itself: once, or again and again.
func TestScheduledInputsCome(t *testing.T) { // A6, A8
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.IdleAfter = time.Hour
		node := s.Start(cfg)
		defer end(node)
		began := time.Now()
		in := later("u1", "parcel", after(90*time.Second))
		if a := node.Must(ada, in); a.Timer != "u1" || a.Turn != "" {
			t.Errorf("answered %+v", a)
		}
		if a := node.Must(ada, in); !a.Duplicate || a.Timer != "u1" {
			t.Errorf("the same id again: %+v", a)
		}
		node.Must(ada, later("u2", "tick", messages.Schedule{Cron: "*/5 * * * *", Name: "tick"}))
		<-time.After(21 * time.Minute)
		node.Must(ada, messages.Cancel{ID: "k", Timer: "tick"})
		<-time.After(21 * time.Minute)
		all := s.Events(ada)
		if order := ends(t, all); fmt.Sprint(order) != "[u1 timer:tick:4 timer:tick:12 timer:tick:19 timer:tick:26]" {
			t.Errorf("inputs came as %v", order)
		}
		for _, f := range s.Frames(ada) {
			if f.Events[0].EventType() != "timer.fired" {
				continue
			}
			fired := f.Events[0].(messages.TimerFired)
			if ran := time.Duration(fired.Ran) * time.Millisecond; fired.Timer == "u1" && (ran != 90*time.Second || f.Time.Sub(began) != ran) ||
				fired.Timer == "tick" && f.Time.Truncate(5*time.Minute) != f.Time {
				t.Errorf("%+v came at %s", fired, f.Time)
			}
		}
	})
}

// A scheduled input comes once, at once, when its node was away at its time; a
// cron line comes once for all the times it has missed. Crashes in the middle of
// it change nothing.
func TestScheduledInputsComeAfterDowntime(t *testing.T) { // A6, A22
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		node := s.Start(config(echo()))
		node.Must(ada, later("u1", "parcel", after(90*time.Second)))
		node.Must(ada, later("u2", "tick", messages.Schedule{Cron: "*/5 * * * *", Name: "tick"}))
		node.Crash()
		<-time.After(time.Hour)
		for range 3 {
			node = s.Start(config(echo()))
			node.Activate(ada)
			node.Crash()
		}
		node = s.Start(config(echo()))
		defer end(node)
		node.Activate(ada)
		all := s.Until(ada, "turn.completed", 2)
		if order := ends(t, all); fmt.Sprint(order) != "[u1 timer:tick:4]" {
			t.Errorf("inputs came as %v", order)
		}
		if fired := actorstest.Of[messages.TimerFired](all); len(fired) != 2 || fired[1].Missed != 11 {
			t.Errorf("fired %+v", fired)
		}
	})
}

// An agent that holds as much as it may hold can still be cleared.
func TestSchedulesAreBounded(t *testing.T) { // A13, A102
	s := actorstest.New(t, nil)
	node := s.Start(with(config(scripted.New()), func(d *actors.Definition) { d.MaxQueue = 2_000 }))
	accepted := 0
	for n := range 2000 {
		a := node.Do(ada, later(longID(n), "x", after(time.Hour)))
		if a.Err == nil {
			accepted++
			continue
		}
		if wantCode(t, a, messages.QueueFull); t.Failed() {
			return
		}
	}
	node.Must(ada, messages.Clear{ID: "c", Reason: "too much"})
	all := s.Events(ada)
	if n := count(all, "timer.cancelled"); n != accepted || n < 200 {
		t.Errorf("%d timers were cancelled of %d", n, accepted)
	}
	big := later("b1", string(make([]byte, 300<<10)), after(time.Hour))
	for n := range 5 {
		big.ID = fmt.Sprint("b", n)
		if a := node.Do(ada, big); (a.Err == nil) != (n < 3) {
			t.Errorf("number %d of 300 KiB: %v", n, a.Err)
		}
	}
}

// Whoever named a reply subject is told what becomes of a scheduled input: that it
// was taken, accepted, refused or cancelled, and how it ended.
func TestScheduledInputsAreRepliedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		heard := newEar()
		cfg := with(config(echo()), func(d *actors.Definition) { d.MaxSteps = 3 })
		cfg.Observer = heard
		node := s.Start(cfg)
		for i, wait := range []time.Duration{10 * time.Second, 20 * time.Second, time.Hour} {
			in := later(fmt.Sprint("u", i), "go", after(wait))
			in.Reply = fmt.Sprint("box.", i)
			if i == 1 {
				in.Options.MaxSteps = 3
			}
			node.Must(ada, in)
		}
		s.Until(ada, "turn.completed")
		node.Crash()
		cfg = with(cfg, func(d *actors.Definition) { d.MaxSteps = 2 }) // the second one asks for too much now
		cfg.Observer = heard
		node = s.Start(cfg)
		defer end(node)
		node.Activate(ada)
		s.Until(ada, "timer.fired", 2)
		node.Must(ada, messages.Cancel{ID: "k", All: true})
		told := map[string]string{}
		for _, r := range heard.heard() {
			told[r.Subject] += " " + r.Event.EventType()
			if r.Input != "u"+r.Subject[4:] {
				t.Errorf("%s is told of input %s", r.Subject, r.Input)
			}
		}
		for subject, want := range map[string]string{
			"box.0": " timer.set input.accepted turn.completed",
			"box.1": " timer.set timer.fired",
			"box.2": " timer.set timer.cancelled",
		} {
			if got := strings.ReplaceAll(told[subject], " turn.completed turn.completed", " turn.completed"); got != want {
				t.Errorf("%s is told%s, want%s", subject, got, want)
			}
		}
	})
}

// What is too large for the log itself is stored beside it, whatever the agent does
// when its timer is set.
func TestLargeScheduledInputOfBusyAgent(t *testing.T) { // A13, A36
	gate := scripted.NewGate()
	defer gate.Release()
	s := actorstest.New(t, nil)
	node := s.Start(with(config(scripted.New(scripted.Held(gate, scripted.Say("done")))), func(d *actors.Definition) { d.MaxQueue = 1 }))
	node.Must(ada, say("u1", "hi"))
	<-gate.Reached()
	node.Must(ada, say("u2", "and then"))
	node.Must(ada, later("u3", many("large "), after(time.Hour)))
	set := actorstest.Of[messages.TimerSet](s.Events(ada))
	if len(set) != 1 || !set[0].Input.Content.HasBlob() || len(blobsOf(t, s, ada)) != 1 {
		t.Errorf("set %d timers; the content is in the log itself", len(set))
	}
}
