package cli_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

// The child processes of benchmarks are no nodes, and run with Go's defaults.
func TestBenchChildrenAreNotTuned(t *testing.T) {
	t.Setenv("GOMAXPROCS", "") // set, it would keep even a node as it is
	before := runtime.GOMAXPROCS(0)
	for _, child := range []string{"loop", "prompt-client"} {
		var out, errs bytes.Buffer
		if code := cli.Main([]string{"reprise", "bench", child}, strings.NewReader(""), &out, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%s: exit %d, %s", child, code, &errs)
		}
	}
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("GOMAXPROCS is %d now, and was %d", after, before)
	}
}

// Both programs get the flags of a comparison.
func TestBenchAgainst(t *testing.T) {
	w := newWorld(t)
	r := w.run("bench", "turns", "--against", binary, "--pairs", "1", "--sync", "relaxed", "--agents", "1,2", "--window", "60ms", "-o", "json")
	r.exits(0)
	olds := 0
	for _, line := range strings.Split(strings.TrimSpace(r.out), "\n") {
		var row struct {
			Figure, Sync string
			Agents       int
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Sync != "relaxed" || row.Agents != 1 && row.Agents != 2 {
			t.Errorf("%s: %v", line, err)
		}
		if row.Figure == "turns, old" {
			olds++
		}
	}
	if olds != 2 {
		t.Errorf("the old build has %d rows of turns, want 2:\n%s", olds, r.out)
	}
	w.run("bench", "--against", binary).exits(2)
	w.run("bench", "serve", "--against", binary, "--pairs", "0").exits(2)
}
