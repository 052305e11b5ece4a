package turn_test

import (
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// A call that kills its process each time does not do so for ever, whatever its
// class: a tool of class check may say "not done" each time.
func TestCallsAreNotRestartedForEver(t *testing.T) { // A22
	for _, tool := range []string{"add", "pay", "ship"} {
		s := newStage(t)
		s.do(`input u1 "go"`)
		s.do("answers asks " + tool + " c1 {}")
		starts := 1
		for range 30 {
			state := &turn.State{}
			for _, f := range s.log {
				state.Apply(f)
			}
			s.state = state
			s.decide(turn.Recover{})
			if tool == "ship" {
				s.decide(turn.ToolReconciled{Call: "c1", NotDone: true})
			}
		}
		failed := false
		for _, f := range s.log {
			for _, ev := range f.Events {
				switch ev := ev.(type) {
				case messages.ToolStarted:
					starts = ev.Attempt
				case messages.ToolFailed:
					failed = ev.Kind == "restarts"
				}
			}
		}
		if !failed || starts > 12 {
			t.Errorf("%s was started %d times, given up: %v", tool, starts, failed)
		}
	}
}
