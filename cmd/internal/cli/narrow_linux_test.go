package cli_test

import (
	"strings"
	"testing"
)

// TestNarrow holds that narrow terminals show of calls and rows what a person looks for.
func TestNarrow(t *testing.T) {
	w := newWorld(t)
	w.dev()
	for range 2 {
		w.run("ask", "support/t1", "Refund 12 cents for order 7").exits(0)
	}
	shown := func(columns uint32, args ...string) string {
		screen := w.onScreen(columns, "", append(args, "--no-pager")...)
		screen.exits(0)
		return screen.said
	}
	if got := shown(100, "effects"); !strings.Contains(got, "(as event 7 before)") || strings.Contains(got, "KEY") {
		t.Errorf("effects: got %s\nwant the call that is repeated, and no keys", got)
	}
	if got := shown(100, "effects", "--wide"); !strings.Contains(got, "KEY") {
		t.Errorf("effects --wide: got %s\nwant keys", got)
	}
	if got := shown(40, "replay", "support/t1", "--plain"); !strings.Contains(got, "refund({") {
		t.Errorf("replay: got %s\nwant the call", got)
	}
}
