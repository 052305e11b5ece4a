package cli

import (
	"strings"
	"testing"
	"time"
)

// A queue that makes no progress is reported, however short it is.
func TestQueueThatStands(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		n      uint64
		oldest time.Time
		status string
	}{
		{0, time.Time{}, "ok"},
		{200, now.Add(-time.Second), "ok"},
		{1, now.Add(-2 * time.Minute), "warn"},
	} {
		if got := queued(c.n, c.oldest, now); got.Status != c.status {
			t.Errorf("%d since %v: %+v", c.n, c.oldest, got)
		}
	}
	if got := queued(1, now.Add(-2*time.Minute), now); !strings.Contains(got.Detail, "1 input or command is stored") || !strings.Contains(got.Detail, "2026-01-02 03:02:05") {
		t.Errorf("it does not tell since when: %s", got.Detail)
	}
}
