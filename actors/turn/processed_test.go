package turn_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// processing is an agent that processes a command at each time, with the ids c0, c1 and so on.
func processing(t *testing.T, times ...time.Time) *turn.State {
	s := &turn.State{}
	for i, at := range times {
		c := messages.SetState{ID: fmt.Sprint("c", i), Patch: []byte(`{}`)}
		first := s.Last + 1
		events, err := s.Decide(turn.Env{Now: at}, c)
		if err != nil {
			t.Fatal(err)
		}
		s.Record(&messages.Frame{First: first, Time: at, Cause: messages.Cause{Type: c.CommandType(), ID: c.ID, Door: "ctl"}, Events: events})
	}
	return s
}

// The window holds the newest 4,096 ids, those of the last 15 minutes, and at most 16,384; a
// snapshot holds the same.
func TestDeduplicationWindow(t *testing.T) { // A8
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		commands int
		apart    time.Duration
		oldest   int // that is still known
	}{
		"few and slow":    {100, time.Hour, 0},
		"many and slow":   {5000, time.Hour, 5000 - 4096},
		"many in a while": {6000, 200 * time.Millisecond, 1495}, // from 299 s on; the newest is at 1199.8 s
		"too many":        {17000, time.Millisecond, 17000 - 16384},
	} {
		t.Run(name, func(t *testing.T) {
			var times []time.Time
			for i := range c.commands {
				times = append(times, start.Add(time.Duration(i)*c.apart))
			}
			s := processing(t, times...)
			image, err := s.Image()
			if err != nil {
				t.Fatal(err)
			}
			again, err := image.State()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*turn.State{s, again} {
				if _, known := s.Processed(fmt.Sprint("c", c.oldest-1)); known {
					t.Errorf("c%d is still in the window", c.oldest-1)
				}
				for _, i := range []int{c.oldest, c.commands - 1} {
					want := messages.EventNumber(i + 2) // the first frame has agent.configured, too
					if i == 0 {
						want = 1
					}
					if n, known := s.Processed(fmt.Sprint("c", i)); !known || n != want {
						t.Errorf("c%d: event %d, %v; want %d", i, n, known, want)
					}
				}
			}
		})
	}
}
