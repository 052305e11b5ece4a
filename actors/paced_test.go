package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// Agents that are taken over together are all fenced at once, in one frame each. Their model
// calls are paced, and do not delay the calls of other agents.
func TestRecoveryIsPaced(t *testing.T) { // A20
	const n = 30
	called, never := make(chan messages.AgentID, 3*n), scripted.NewGate()
	model := scripted.Func(func(r providers.Request) scripted.Step {
		called <- r.Agent
		return scripted.Held(never, scripted.Say("never"))
	})
	s := actorstest.New(t, nil)
	first := s.Start(config(model))
	var all []messages.AgentID
	for i := range n {
		a := actorstest.Agent(ada.Kind, fmt.Sprint("a", i))
		all = append(all, a)
		first.Must(a, say("u1", "hello"))
	}
	for range n {
		<-called
	}
	first.Crash()
	cfg := config(model)
	cfg.RecoverRate = 1 // per second
	begun := time.Now()
	second := s.Start(cfg)
	for _, a := range all {
		if answer := second.Activate(a); answer.Err != nil {
			t.Fatal(answer.Err)
		}
		frames := s.Frames(a)
		last := frames[len(frames)-1]
		if got := fmt.Sprint(last.Events[0].EventType(), last.Events[1].EventType()); len(frames) != 2 || got != "agent.activatedmodel.restarted" {
			t.Errorf("%s has %d frames and the last begins with %s, want 2 and agent.activatedmodel.restarted", a, len(frames), got)
		}
	}
	if calls, took := len(called), time.Since(begun); calls > n/2+int(took.Seconds()) {
		t.Errorf("got %d model calls within %v, want at most %d", calls, took, n/2+int(took.Seconds()))
	}
	other := actorstest.Agent(ada.Kind, "other")
	second.Must(other, say("u1", "hello"))
	for a := range called {
		if a == other {
			return
		}
	}
}
