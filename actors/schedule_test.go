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

// later returns an input with a schedule.
func later(id, text string, s messages.Schedule) messages.Input {
	in := say(id, text)
	in.Schedule = s
	return in
}

func after(d time.Duration) messages.Schedule { return messages.Schedule{In: messages.Span(d)} }

// An idle agent in memory accepts its scheduled inputs itself: a single input once, a
// repeated one at each of its times.
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
			t.Errorf("got answer %+v, want the timer u1 and no turn", a)
		}
		if a := node.Must(ada, in); !a.Duplicate || a.Timer != "u1" {
			t.Errorf("the same id again: got answer %+v, want a duplicate with the timer u1", a)
		}
		node.Must(ada, later("u2", "tick", messages.Schedule{Cron: "*/5 * * * *", Name: "tick"}))
		<-time.After(21 * time.Minute)
		node.Must(ada, messages.Cancel{ID: "k", Timer: "tick"})
		<-time.After(21 * time.Minute)
		all := s.Events(ada)
		if order := ends(t, all); fmt.Sprint(order) != "[u1 timer:tick:4 timer:tick:12 timer:tick:19 timer:tick:26]" {
			t.Errorf("got inputs %v, want u1 and four ticks", order)
		}
		for _, f := range s.Frames(ada) {
			if f.Events[0].EventType() != "timer.fired" {
				continue
			}
			fired := f.Events[0].(messages.TimerFired)
			if ran := time.Duration(fired.Ran) * time.Millisecond; fired.Timer == "u1" && (ran != 90*time.Second || f.Time.Sub(began) != ran) ||
				fired.Timer == "tick" && f.Time.Truncate(5*time.Minute) != f.Time {
				t.Errorf("got %+v at %s, want it at its time", fired, f.Time)
			}
		}
	})
}

// A scheduled input whose time passes while no node runs is accepted once, by the first
// activation. A cron schedule is accepted once for all the times that it missed. Crashes in
// between change nothing.
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
			t.Errorf("got inputs %v, want u1 and four ticks", order)
		}
		if fired := actorstest.Of[messages.TimerFired](all); len(fired) != 2 || fired[1].Missed != 11 {
			t.Errorf("got timers fired %+v, want two, the second with 11 missed", fired)
		}
	})
}

// An agent that holds as many scheduled inputs as it can accept can still be cleared.
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
		t.Errorf("got %d timers cancelled, want the %d that were accepted", n, accepted)
	}
	big := later("b1", string(make([]byte, 300<<10)), after(time.Hour))
	for n := range 5 {
		big.ID = fmt.Sprint("b", n)
		if a := node.Do(ada, big); (a.Err == nil) != (n < 3) {
			t.Errorf("input %d of 300 KiB: got error %v, want one from the fourth on", n, a.Err)
		}
	}
}

// The reply subject of a scheduled input receives each event about it: that its timer was
// set, that it was accepted, refused or cancelled, and how it ended.
func TestScheduledInputsAreRepliedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, nil)
		observer := newObserver()
		cfg := with(config(echo()), func(d *actors.Definition) { d.MaxSteps = 3 })
		cfg.Observer = observer
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
		cfg = with(cfg, func(d *actors.Definition) { d.MaxSteps = 2 }) // below what the second input asks for
		cfg.Observer = observer
		node = s.Start(cfg)
		defer end(node)
		node.Activate(ada)
		s.Until(ada, "timer.fired", 2)
		node.Must(ada, messages.Cancel{ID: "k", All: true})
		replies := map[string]string{}
		for _, r := range observer.received() {
			replies[r.Subject] += " " + r.Event.EventType()
			if r.Input != "u"+r.Subject[4:] {
				t.Errorf("%s got a reply about input %s", r.Subject, r.Input)
			}
		}
		for subject, want := range map[string]string{
			"box.0": " timer.set input.accepted turn.completed",
			"box.1": " timer.set timer.fired",
			"box.2": " timer.set timer.cancelled",
		} {
			if got := strings.ReplaceAll(replies[subject], " turn.completed turn.completed", " turn.completed"); got != want {
				t.Errorf("%s got replies%s, want%s", subject, got, want)
			}
		}
	})
}

// The content of a scheduled input that is too large for a frame is stored as a blob, also
// while the agent is busy.
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
		t.Errorf("got %d timers set, want one whose content is a blob", len(set))
	}
}
