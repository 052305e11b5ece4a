package turn_test

import (
	"slices"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
)

// A call that kills its process each time does not do so forever, whatever its
// OnUnknown: a tool that reconciles may report "not done" each time.
func TestCallsAreNotRestartedForEver(t *testing.T) { // A22
	for _, tool := range []string{"add", "pay", "ship"} {
		s := turntest.New(t)
		s.Do(`input u1 "go"`)
		s.Do("answers asks " + tool + " c1 {}")
		starts := 1
		for range 30 {
			state := &turn.State{}
			for _, f := range s.Log {
				state.Apply(f)
			}
			s.State = state
			s.Decide(turn.Recover{})
			if tool == "ship" {
				s.Decide(turn.ToolReconciled{Call: "c1", Outcome: messages.OutcomeRetry})
			}
		}
		failed := false
		for _, f := range s.Log {
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

// A turn whose time has passed while no node ran it begins nothing more: neither
// a model call nor a lost call that could run again.
func TestNothingBeginsAfterItsTime(t *testing.T) { // A17, A22
	for _, fate := range []string{"", "answers asks pay c1 {}"} {
		s := turntest.New(t)
		s.Env.Definition.TurnLimits.MaxDuration = 1000
		s.Do(`input u1 "go"`)
		if fate != "" {
			s.Do(fate)
		}
		s.Do("crash")
		s.Do("pass 1h")
		before := len(s.Log)
		s.Do("recover")
		var types []string
		for _, f := range s.Log[before:] {
			for _, ev := range f.Events {
				types = append(types, ev.EventType())
			}
		}
		if slices.Contains(types, "model.requested") || slices.Contains(types, "tool.started") || types[len(types)-1] != "turn.failed" {
			t.Errorf("after %q: %v", fate, types)
		}
	}
}
