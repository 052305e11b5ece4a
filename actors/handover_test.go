package actors_test

import (
	"context"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// A partition is drained while a tool runs that must not be cut off: the drain waits
// for its result, the next such call is left to the next owner, and nobody has to say
// what became of anything.
func TestDrain(t *testing.T) { // A91 A22
	for _, onUnknown := range []tool.OnUnknown{tool.Pause, tool.Reconcile} {
		t.Run(string(onUnknown), func(t *testing.T) {
			t.Parallel()
			s := actorstest.New(t, nil)
			running, end, ran := make(chan struct{}), make(chan struct{}), make(chan string, 10)
			slow := toolOf("slow", onUnknown, func(ctx context.Context) (string, error) {
				close(running)
				select {
				case <-end:
				case <-ctx.Done():
				}
				ran <- "slow"
				return "done", ctx.Err()
			})
			next := toolOf("next", onUnknown, func(context.Context) (string, error) {
				ran <- "next"
				return "done", nil
			})
			model := scripted.New(scripted.Ask(call("c1", "slow")), scripted.Ask(call("c2", "next")), scripted.Say("all done"), scripted.Say("and that"))
			cfg := config(model, slow, next)
			first := s.Start(cfg)
			first.Must(ada, say("1", "go"))
			<-running
			drained := first.Drain(ada)
			first.Must(ada, say("2", "and then")) // everything else goes on
			if count(s.Events(ada), "tool.completed") != 0 {
				t.Error("the tool has ended")
			}
			close(end)
			drained()
			if count(s.Events(ada), "tool.completed") != 1 {
				t.Error("the drain did not wait for the result")
			}
			s.Until(ada, "tool.requested", 2)
			first.Stop()
			if n := count(s.Events(ada), "tool.started"); n != 1 {
				t.Errorf("%d calls have begun", n)
			}
			second := s.Start(cfg)
			second.Activate(ada)
			s.Until(ada, "turn.completed", 2)
			if events := s.Events(ada); count(events, "tool.unknown") != 0 || count(events, "tool.started") != 2 {
				t.Errorf("%v", events)
			}
			if got := <-ran + " " + <-ran; got != "slow next" || len(ran) != 0 {
				t.Errorf("%s ran, and %d more", got, len(ran))
			}
		})
	}
}

// A drain that is called off: what waited for the next owner begins here.
func TestCancelDrain(t *testing.T) { // A91
	s := actorstest.New(t, nil)
	asked := scripted.NewGate()
	once := toolOf("once", tool.Pause, func(context.Context) (string, error) { return "ran", nil })
	model := scripted.New(scripted.Held(asked, scripted.Ask(call("c1", "once"))), scripted.Say("done"), scripted.Say("more"))
	n := s.Start(config(model, once))
	n.Must(ada, say("1", "go"))
	<-asked.Reached()
	n.Drain(ada)() // a model call may be cut off
	asked.Release()
	s.Until(ada, "tool.requested")
	n.Must(ada, say("2", "more")) // comes after whatever would have begun
	if n := count(s.Events(ada), "tool.started"); n != 0 {
		t.Fatalf("%d calls have begun", n)
	}
	n.CancelDrain(ada)
	s.Until(ada, "turn.completed", 2)
	if events := s.Events(ada); count(events, "tool.completed") != 1 || count(events, "agent.activated") != 0 {
		t.Errorf("%v", events)
	}
}
