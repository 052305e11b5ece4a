package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// unsure is the MayAct of a node. It returns false while no is set.
type unsure struct {
	no    atomic.Bool
	asked chan struct{} // receives after mayAct returned false
}

// wait waits until mayAct returns false again.
func (u *unsure) wait() {
	select {
	case <-u.asked:
	default:
	}
	<-u.asked
}

func newUnsure() *unsure { return &unsure{asked: make(chan struct{}, 1)} }

func (u *unsure) mayAct() bool {
	if !u.no.Load() {
		return true
	}
	select {
	case u.asked <- struct{}{}:
	default:
	}
	return false
}

// A node that may not act makes no calls. It makes them once it may act again, and none of
// them ends with an unknown outcome.
func TestCallsWaitForTrust(t *testing.T) {
	s := actorstest.New(t, nil)
	u := newUnsure()
	u.no.Store(true)
	ran := make(chan struct{}, 10)
	once := toolOf("once", tool.Pause, func(context.Context) (string, error) {
		ran <- struct{}{}
		return "ran", nil
	})
	model := scripted.Func(func(r providers.Request) scripted.Step {
		if len(r.Items) == 1 {
			u.no.Store(true) // until it is reset below
			return scripted.Ask(call("c1", "once"))
		}
		return scripted.Say("done")
	})
	cfg := config(model, once)
	cfg.MayAct = u.mayAct
	n := s.Start(cfg)
	n.Must(ada, say("1", "go"))
	u.wait()
	if model.Calls() != 0 {
		t.Error("got a model call while the node may not act")
	}
	u.no.Store(false)
	s.Until(ada, "tool.started")
	u.wait()
	if len(ran) != 0 || count(s.Events(ada), "tool.completed") != 0 {
		t.Error("got a tool call while the node may not act")
	}
	u.no.Store(false)
	events := s.Until(ada, "turn.completed")
	if len(ran) != 1 || model.Calls() != 2 || count(events, "tool.unknown") != 0 || count(events, "model.restarted") != 0 {
		t.Errorf("got %d tool calls and %d model calls, want 1 and 2: %v", len(ran), model.Calls(), events)
	}
}

// A call that waits for the node to act is given up when its agent moves to another owner,
// even if the node may act again, and when its time is over.
func TestCallsThatWaitAreGivenUp(t *testing.T) {
	for _, ends := range []string{"lost", "late"} {
		t.Run(ends, func(t *testing.T) {
			t.Parallel()
			s := actorstest.New(t, nil)
			u := newUnsure()
			var ran atomic.Int32
			made := make(chan error, 1)
			limit := time.Minute
			if ends == "late" {
				limit = 50 * time.Millisecond
			}
			once := tool.New("once", "", tool.Pause, func(context.Context, none) (string, error) {
				ran.Add(1)
				return "ran", nil
			}).Timeout(limit)
			cfg := config(scripted.New(scripted.Ask(call("c1", "once")), scripted.Say("done")), once)
			cfg.MayAct = u.mayAct
			cfg = with(cfg, func(d *actors.Definition) {
				d.Hooks = []actors.Hook{{Name: "around", AroundTool: func(ctx context.Context, _ actors.HookInfo, _ actors.HookedCall, next func(context.Context) (string, error)) (string, error) {
					u.no.Store(true)
					output, err := next(ctx)
					u.no.Store(false)
					made <- err
					return output, err
				}}}
			})
			n := s.Start(cfg)
			n.Must(ada, say("1", "go"))
			if ends == "lost" {
				u.wait()
				n.Stop()
			}
			if err := <-made; err == nil || ran.Load() != 0 {
				t.Errorf("got error %v and %d runs, want an error and none", err, ran.Load())
			}
			if ends == "late" {
				failed := actorstest.Of[messages.ToolFailed](s.Until(ada, "turn.completed"))
				if len(failed) != 1 || failed[0].Kind != "timeout" {
					t.Errorf("got failures %+v, want one timeout", failed)
				}
			}
		})
	}
}
