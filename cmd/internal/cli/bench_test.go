package cli_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

// The child processes of benchmarks are no nodes, and run with Go's defaults.
func TestBenchChildrenAreNotTuned(t *testing.T) {
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
