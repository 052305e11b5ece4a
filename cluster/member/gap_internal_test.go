package member

import (
	"testing"
	"testing/synctest"
	"time"
)

// What a node reads after its beats came late may have been sent before them; what it reads
// between regular beats was sent then.
func TestGap(t *testing.T) { // A108
	synctest.Test(t, func(t *testing.T) {
		m := new(Members)
		after := func(d time.Duration) time.Time {
			<-time.After(d)
			m.beaten(1, time.Now())
			return time.Now().Round(0)
		}
		is := func(when string, there time.Time, steady bool) {
			t.Helper()
			read := time.Now()
			if at := m.There(); !at.Equal(there) {
				t.Errorf("%s: it was there at %v, want %v", when, at, there)
			}
			if _, known := m.Steady(read); known {
				t.Errorf("%s: it is known before the next beat", when)
			}
			after(beat)
			if was, known := m.Steady(read); was != steady || !known {
				t.Errorf("%s: steady %v, known %v; want %v", when, was, known, steady)
			}
		}
		is("after the first beat", after(0), true)
		is("after regular beats", after(beat), true)
		before := m.newest.Round(0)
		after(2 * beat)
		is("after a late beat", before, false)
		after(2 * beat)
		is("after another soon", before, false)
		for range int(heldUp/beat) + 1 {
			after(beat)
		}
		is("a while later", after(beat), true)
	})
}
