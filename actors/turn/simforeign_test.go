package turn_test

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// TestForeignLogs continues with logs that no machine of this version wrote:
// whatever they hold, the machine answers, and folding them twice yields the same.
func TestForeignLogs(t *testing.T) {
	guard(t)
	for seed := range uint64(150) {
		if err := foreign(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// foreign lives a life, spoils its log, and continues with what is left.
func foreign(seed uint64) (err error) {
	s, broke := life{seed: seed}.play()
	if broke != nil {
		return broke
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v\n%s", p, debug.Stack())
		}
	}()
	s.dice(drawForeign)
	other := newSim(s.life)
	other.pcg, other.r, other.env, other.blind = s.pcg, s.r, s.env, true
	spoil := []func([]messages.Event) []messages.Event{other.withHoles, other.disordered}[s.r.IntN(2)]
	for _, f := range s.log[:s.r.IntN(len(s.log)+1)] {
		spoiled := *f
		spoiled.First, spoiled.Events = other.live.Last+1, spoil(f.Events)
		other.live.Apply(&spoiled)
		other.append(&spoiled)
	}
	other.decide(turn.Recover{})
	for range 40 {
		other.step()
	}
	other.fromScratch()
	return nil
}

// withHoles leaves events out.
func (s *sim) withHoles(events []messages.Event) (kept []messages.Event) {
	for _, ev := range events {
		if !s.chance(8) {
			kept = append(kept, ev)
		}
	}
	return kept
}

// disordered shuffles a frame now and then, and repeats some of it.
func (s *sim) disordered(events []messages.Event) []messages.Event {
	events = append([]messages.Event(nil), events...)
	if s.chance(4) && len(events) > 0 {
		events = append(events, events[s.r.IntN(len(events))])
		s.r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	}
	return events
}
