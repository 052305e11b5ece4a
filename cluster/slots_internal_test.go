package cluster

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Slots go to those who have waited for the longest, and one that is given to a waiter that
// has left goes to the next.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slots{free: 1}
		ctx := context.Background()
		if !s.take(ctx, time.Unix(9, 0)) {
			t.Fatal("the first has no slot")
		}
		leaving, leave := context.WithCancel(ctx)
		var came []int64
		for _, since := range []int64{5, 2, 8, 3} {
			of := ctx
			if since == 2 {
				of = leaving
			}
			go func() {
				if s.take(of, time.Unix(since, 0)) {
					came = append(came, since)
					s.leave()
				}
			}()
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		s.leave()
		synctest.Wait()
		if !slices.Equal(came, []int64{3, 5, 8}) || s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("slots went to %v; %d are free, %d wait", came, s.free, len(s.waiting))
		}
	})
}
