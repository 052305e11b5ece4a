package natslog_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// TestFetchesAreBounded checks that a fetch of large frames, behind small ones, brings few: a server
// cuts the connection of a node on which too much waits to be sent.
func TestFetchesAreBounded(t *testing.T) {
	t.Parallel()
	l, _ := open(t, 1)
	a, tail, stored := logtest.Agent("ada"), eventlog.Position{}, 0
	add := func(n int, events ...messages.Event) {
		for range n {
			e := logtest.Entry(t, a, tail, events...)
			var err error
			if tail, err = l.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			stored += len(e.Bytes)
		}
	}
	add(80)
	add(20, messages.CommandNoop{Command: "abort", Reason: strings.Repeat("x", 500<<10)})
	sizes, err := l.Fetches(t.Context(), a.Partition())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, size := range sizes {
		if sum += size; size > natslog.BytesAtOnce {
			t.Errorf("a fetch brought %d bytes, want %d at most", size, natslog.BytesAtOnce)
		}
	}
	if sum != stored || len(sizes) > 6 {
		t.Errorf("%d bytes came by fetches of %d, want %d", sum, sizes, stored)
	}
}
