package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/memlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// Cases that the simulation found, each as a test of its own.

// An input that steers a turn while its end hooks run is seen by another model call. The
// hooks run again before that call, and nothing is appended between the two runs.
func TestSteerWhileTurnEnds(t *testing.T) { // A2, A62
	synctest.Test(t, func(t *testing.T) {
		asked, answer := make(chan struct{}, 9), make(chan struct{})
		model := scripted.New(scripted.Say("one"), scripted.Say("two"))
		s := actorstest.New(t, nil)
		node := s.Start(with(config(model), func(d *actors.Definition) {
			d.Hooks = []actors.Hook{{
				Name: "slow",
				TurnStart: func(context.Context, actors.HookInfo) (actors.Verdict, error) {
					return actors.Verdict{}, nil
				},
				TurnEnd: func(context.Context, actors.HookInfo, actors.HookedEnd) (actors.Verdict, error) {
					asked <- struct{}{}
					<-answer
					return actors.Verdict{}, nil
				},
			}}
		}))
		node.Must(ada, say("u1", "go"))
		<-asked
		node.Must(ada, under(messages.PolicySteer, "u2", "and this"))
		close(answer)
		ended := actorstest.Of[messages.TurnCompleted](s.Until(ada, "turn.completed"))
		if len(ended[0].Inputs) != 2 || ended[0].Output != "two" || model.Calls() != 2 {
			t.Errorf("got %+v after %d model calls, want both inputs and the output two after 2", ended, model.Calls())
		}
		end(node)
	})
}

// slowState is a log whose appends of state changes take a second.
type slowState struct{ eventlog.Log }

func (l slowState) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if e.Frame.Cause.Type == "set_state" {
		<-time.After(time.Second)
	}
	return l.Log.Append(ctx, e)
}

// A model's last answer and the expiry of the turn's time arrive while the log is slow. The
// answer ends the turn, and the timer does not fire in the next turn.
func TestTimerOfTheTurnBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := actorstest.New(t, &eventlog.Store{Log: slowState{memlog.New()}})
		gate := scripted.NewGate()
		model := scripted.New(scripted.Held(gate, scripted.Say("one")), scripted.Say("two"))
		node := s.Start(with(config(model), func(d *actors.Definition) {
			d.TurnLimits.MaxDuration = 10_000
		}))
		node.Must(ada, say("u1", "go"))
		node.Must(ada, say("u2", "go on"))
		<-time.After(9500 * time.Millisecond)
		wait := node.Ask(ada, messages.SetState{ID: "s1", Patch: []byte(`{"a":1}`)})
		<-time.After(100 * time.Millisecond)
		gate.Release()
		wait()
		if all := s.Until(ada, "turn.completed", 2); count(all, "timer.fired") != 0 {
			t.Errorf("got events %v, want no timer.fired", s.Types(ada))
		}
		end(node)
	})
}
