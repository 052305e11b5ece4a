package doctor

import (
	"testing"
	"testing/synctest"
	"time"
)

// However few the messages are, they are read as fast as was said and no faster.
func TestPace(t *testing.T) {
	for _, tc := range []struct {
		rate, messages int
		takes          time.Duration
	}{
		{0, 1000, 0}, {5, 4, 0}, {5, 20, 4 * time.Second}, {50, 149, 2 * time.Second}, {1000, 1000, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, p := time.Now(), pace{rate: tc.rate}
			for range tc.messages {
				if err := p.next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took != tc.takes {
				t.Errorf("%d at %d a second took %v", tc.messages, tc.rate, took)
			}
		})
	}
}
