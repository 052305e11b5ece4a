package cluster

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTicksAreNow checks that what is done at each tick is given the time it is done at: a tick waits
// for work that takes longer than the interval.
func TestTicksAreNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		for now := range ticks(t.Context(), time.Second) {
			if late := time.Since(now); late != 0 {
				t.Errorf("tick %d is given a time %v ago", n, late)
			}
			if n++; n == 3 {
				return
			}
			<-time.After(5 * time.Second)
		}
	})
}
