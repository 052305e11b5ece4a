package cluster

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Places go to those who have waited for the longest, and one that is given to
// somebody who has left goes to the next.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &places{free: 1}
		ctx := context.Background()
		if !p.take(ctx, time.Unix(9, 0)) {
			t.Fatal("the first has no place")
		}
		leaving, leave := context.WithCancel(ctx)
		var came []int64
		for _, since := range []int64{5, 2, 8, 3} {
			of := ctx
			if since == 2 {
				of = leaving
			}
			go func() {
				if p.take(of, time.Unix(since, 0)) {
					came = append(came, since)
					p.leave()
				}
			}()
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		p.leave()
		synctest.Wait()
		if !slices.Equal(came, []int64{3, 5, 8}) || p.free != 1 || len(p.waiting) != 0 {
			t.Errorf("places went to %v; %d are free, %d wait", came, p.free, len(p.waiting))
		}
	})
}
