package cluster

import (
	"runtime"
	"testing"
	"time"
)

// What the index may take falls with what is left of the machine, and never to
// nothing.
func TestRestFor(t *testing.T) {
	const worked = 100 * time.Millisecond
	for _, c := range []struct {
		busy       float64
		processors int
		want       time.Duration
	}{
		{0, 6, 0}, {0, 12, 0}, // a processor and more
		{0, 1, 500 * time.Millisecond},
		{0.5, 1, 2300 * time.Millisecond},
		{0.5, 4, 500 * time.Millisecond},
		{1, 1, 23900 * time.Millisecond},
		{1, 4, 5900 * time.Millisecond},
	} {
		if got := restFor(worked, c.busy, c.processors); got.Round(time.Millisecond) != c.want {
			t.Errorf("%.1f of %d processors busy: a rest of %v, want %v", c.busy, c.processors, got, c.want)
		}
	}
}

func TestBusy(t *testing.T) {
	var b busy
	now := time.Now()
	for i, c := range []struct {
		after             time.Duration
		idle, total, want float64
	}{
		{0, 0, 0, 0}, {time.Second, 3, 4, 0.25}, {time.Second, 3, 8, 1}, {time.Second, 3, 8, 0.5}, {2 * time.Second, 3, 8, 0.125},
		{0, 3, 8, 0.125}, {time.Second, 7.5, 12, 0}, {time.Second, 7, 13, 1},
	} {
		now = now.Add(c.after)
		if got := b.note(now, c.idle, c.total); got != c.want {
			t.Errorf("look %d: %v, want %v", i, got, c.want)
		}
	}
	b = busy{}
	runtime.GC() // it counts now
	if b.look(); b.total <= 0 {
		t.Error("the runtime has counted nothing: its metrics have other names")
	}
}
