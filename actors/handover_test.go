package actors_test

import (
	"context"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// TestDrain drains a partition while a tool runs that must not be cut off. The drain waits for
// its result. The next such call starts at the next owner, so no call ends with an unknown
// outcome.
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
			if onUnknown == tool.Reconcile {
				unsure := func(context.Context, string) (string, tool.Found, error) { return "", tool.Unsure, nil }
				slow, next = slow.ReconcileWith(unsure), next.ReconcileWith(unsure)
			}
			cfg := config(model, slow, next)
			first := s.Start(cfg)
			first.Must(ada, say("1", "go"))
			<-running
			drained := first.Drain(ada)
			first.Must(ada, say("2", "and then")) // all other work continues
			if count(s.Events(ada), "tool.completed") != 0 {
				t.Error("got a result before the tool ended")
			}
			close(end)
			drained()
			if count(s.Events(ada), "tool.completed") != 1 {
				t.Error("got no result when the drain returned")
			}
			s.Until(ada, "tool.requested", 2)
			first.Stop()
			if n := count(s.Events(ada), "tool.started"); n != 1 {
				t.Errorf("got %d started calls, want 1", n)
			}
			second := s.Start(cfg)
			second.Activate(ada)
			s.Until(ada, "turn.completed", 2)
			if events := s.Events(ada); count(events, "tool.unknown") != 0 || count(events, "tool.started") != 2 {
				t.Errorf("got %v, want two started calls and none unknown", events)
			}
			if got := <-ran + " " + <-ran; got != "slow next" || len(ran) != 0 {
				t.Errorf("got the runs %s and %d more, want slow next", got, len(ran))
			}
		})
	}
}

// A cancelled drain starts the call that waited for the next owner on this node.
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
	n.Must(ada, say("2", "more")) // is answered after a call would have started
	if n := count(s.Events(ada), "tool.started"); n != 0 {
		t.Fatalf("got %d started calls, want 0", n)
	}
	n.CancelDrain(ada)
	s.Until(ada, "turn.completed", 2)
	if events := s.Events(ada); count(events, "tool.completed") != 1 || count(events, "agent.activated") != 0 {
		t.Errorf("got %v, want one result and no takeover", events)
	}
}
