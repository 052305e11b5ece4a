package cli

import (
	"context"
	"fmt"
	"testing"
)

// A command that Ctrl-C has ended says so, and not what its context says.
func TestInterrupted(t *testing.T) {
	a := &app{running: true}
	if f := a.failure(fmt.Errorf("read: %w", context.Canceled)); f.what != "interrupted" || f.code != exitFailed {
		t.Errorf("got %q, exit code %d", f.what, f.code)
	}
}
