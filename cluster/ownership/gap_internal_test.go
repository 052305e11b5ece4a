package ownership

import (
	"testing"
	"testing/synctest"
	"time"
)

// What a node reads after its heartbeats came late may have been sent before them; what it reads
// between regular heartbeats was sent then.
func TestGap(t *testing.T) { // A108
	synctest.Test(t, func(t *testing.T) {
		m := new(Ownership)
		after := func(d time.Duration) time.Time {
			<-time.After(d)
			m.renewed(1, time.Now())
			return time.Now().Round(0)
		}
		is := func(when string, there time.Time, steady bool) {
			t.Helper()
			read := time.Now()
			if at := m.There(); !at.Equal(there) {
				t.Errorf("%s: it was there at %v, want %v", when, at, there)
			}
			if _, known := m.Steady(read); known {
				t.Errorf("%s: it is known before the next heartbeat", when)
			}
			after(heartbeat)
			if was, known := m.Steady(read); was != steady || !known {
				t.Errorf("%s: steady %v, known %v; want %v", when, was, known, steady)
			}
		}
		is("after the first heartbeat", after(0), true)
		is("after regular heartbeats", after(heartbeat), true)
		before := m.newest.Round(0)
		after(2 * heartbeat)
		is("after a late heartbeat", before, false)
		after(2 * heartbeat)
		is("after another soon", before, false)
		for range int(heldUp/heartbeat) + 1 {
			after(heartbeat)
		}
		is("a while later", after(heartbeat), true)
	})
}
