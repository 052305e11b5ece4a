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

// end stops the node, and lets protoactor's count of dead letters run out,
// which takes a second of the false clock.
func end(n *actorstest.Node) {
	n.Stop()
	<-time.After(2 * time.Second)
}

// A tool that does not heed its context does not hold the turn for ever. The
// clock is a false one: it moves when nobody has anything to do.
func TestToolIgnoresItsContext(t *testing.T) { // A31
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		deaf := toolOf("deaf", tool.Pause, func(context.Context) (string, error) { <-free; return "late", nil }).Timeout(10 * time.Second)
		model := scripted.New(scripted.Ask(call("c1", "deaf")), scripted.Say("done"))
		s := actorstest.New(t, nil)
		node := s.Start(config(model, deaf))
		node.Must(ada, say("u1", "go"))
		failed := actorstest.Of[messages.ToolFailed](s.Until(ada, "tool.failed"))
		if failed[0].Kind != "timeout" {
			t.Errorf("%+v", failed)
		}
		s.Until(ada, "turn.completed")
		close(free) // its result comes late and changes nothing
		node.Must(ada, messages.Resume{ID: "r1"})
		if all := s.Events(ada); count(all, "tool.completed") != 0 {
			t.Errorf("%v", s.Types(ada))
		}
		end(node)
	})
}

// Five attempts, each later than the one before.
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
			t.Errorf("%d calls", n)
		}
		failed := actorstest.Of[messages.ModelFailed](s.Until(ada, "turn.completed"))
		for i, most := range []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 24 * time.Second} {
			if after := failed[i].RetryAt.Sub(begun); after < most/4 || after > most {
				t.Errorf("attempt %d was to begin after %v, at most %v", i+2, after, most)
			}
		}
		if last := failed[3].RetryAt.Sub(begun); last < 20*time.Second {
			t.Errorf("tried again after %v, 20 seconds were asked for", last)
		}
		end(node)
	})
}

// An agent that failed and then worked for long is not punished for it when it
// fails again: the pauses before its next activation begin again.
func TestPausesBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures atomic.Int32
		s := actorstest.New(t, nil)
		cfg := config(echo())
		cfg.IdleAfter = time.Hour
		cfg.Log = &refusing{s.Log(), func(e eventlog.Entry) error {
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
			t.Errorf("three failures in a row took %v: the pauses do not double", d)
		}
		<-time.After(time.Minute)
		failures.Store(1)
		if d := took("u2", 2); d >= 100*time.Millisecond {
			t.Errorf("one failure took %v", d)
		}
		end(node)
	})
}
