package actors_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// end stops the node and waits until protoactor's throttle of dead letter logs ends, which
// takes a second of the fake clock.
func end(n *actorstest.Node) {
	n.Stop()
	<-time.After(2 * time.Second)
}

// A tool that ignores its context does not block the turn. The clock is fake: it advances when
// every goroutine waits.
func TestToolIgnoresItsContext(t *testing.T) { // A31
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		blocked := toolOf("deaf", tool.Pause, func(context.Context) (string, error) { <-free; return "late", nil }).Timeout(10 * time.Second)
		model := scripted.New(scripted.Ask(call("c1", "deaf")), scripted.Say("done"))
		s := actorstest.New(t, nil)
		node := s.Start(config(model, blocked))
		node.Must(ada, say("u1", "go"))
		failed := actorstest.Of[messages.ToolFailed](s.Until(ada, "tool.failed"))
		if failed[0].Kind != "timeout" {
			t.Errorf("got failures %+v, want a timeout", failed)
		}
		s.Until(ada, "turn.completed")
		close(free) // its result arrives late and changes nothing
		node.Must(ada, messages.Resume{ID: "r1"})
		if all := s.Events(ada); count(all, "tool.completed") != 0 {
			t.Errorf("got a result of a call that timed out: %v", s.Types(ada))
		}
		end(node)
	})
}

// Each attempt of a model call has a longer backoff than the one before, and at least the
// pause that the provider asks for.
func TestBackoff(t *testing.T) { // A50
	synctest.Test(t, func(t *testing.T) {
		busy := scripted.Fail(&providers.Error{Kind: providers.Overloaded, Temporary: true})
		model := scripted.New(busy, busy, busy, scripted.Fail(&providers.Error{Kind: providers.RateLimit, Temporary: true, RetryAfter: 20 * time.Second}), scripted.Say("done"))
		s := actorstest.New(t, nil)
		node := s.Start(config(model))
		begun := time.Now()
		node.Must(ada, say("u1", "go"))
		s.Until(ada, "model.failed", 4)
		if n := model.Calls(); n != 4 {
			t.Errorf("got %d calls, want 4", n)
		}
		failed := actorstest.Of[messages.ModelFailed](s.Until(ada, "turn.completed"))
		for i, most := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 24 * time.Second} {
			if after := failed[i].RetryAt.Sub(begun); after < most/4 || after > most {
				t.Errorf("attempt %d: got backoff %v, want at most %v", i+2, after, most)
			}
		}
		if last := failed[3].RetryAt.Sub(begun); last < 20*time.Second {
			t.Errorf("got backoff %v, want the 20 seconds that the provider asked for", last)
		}
		end(node)
	})
}

// An agent that fails after working for a long time is restarted with the shortest backoff
// again.
func TestPausesBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures atomic.Int32
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.IdleAfter = time.Hour
		cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
			if e.Frame.Cause.Type == "effect" && failures.Add(-1) >= 0 {
				return &eventlog.DamageError{Agent: e.Agent, Err: errors.New("for the test")}
			}
			return nil
		}}
		node := s.Start(cfg)
		took := func(input string, turns int) time.Duration {
			begun := time.Now()
			node.Must(ada, say(input, "go"))
			s.Until(ada, "turn.completed", turns)
			return time.Since(begun)
		}
		failures.Store(3)
		if d := took("u1", 1); d < 350*time.Millisecond {
			t.Errorf("three failures in a row: got %v, want at least 350ms from doubling backoff", d)
		}
		<-time.After(time.Minute)
		failures.Store(1)
		if d := took("u2", 2); d >= 100*time.Millisecond {
			t.Errorf("one failure: got %v, want less than 100ms", d)
		}
		end(node)
	})
}
