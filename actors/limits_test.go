package actors_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

func one(d *actors.Definition) { d.Parallel = 1 }

func TestStepLimit(t *testing.T) { // A17, A16
	noop := toolOf("noop", tool.ReadOnly, func(context.Context) (string, error) { return "ok", nil })
	model := scripted.Func(func(r providers.Request) scripted.Step { return scripted.Ask(call("c"+string(r.Call), "noop")) })
	s := actorstest.New(t, nil)
	cfg := with(config(model, noop), func(d *actors.Definition) { d.MaxSteps = 3 })
	node := s.Start(cfg)
	node.Must(ada, say("u1", "loop"))
	all := s.Until(ada, "turn.failed")
	failed := actorstest.Of[messages.TurnFailed](all)[0]
	if failed.Reason != "max_steps" || failed.Steps != 3 || model.Calls() != 3 {
		t.Errorf("got %+v after %d model calls, want max_steps after 3", failed, model.Calls())
	}
	wantCode(t, node.Do(ada, messages.Resume{ID: "r1"}), messages.Conflict)
	node.Crash()
	node = s.Start(cfg) // the count includes steps before a restart
	if a := node.Must(ada, messages.Resume{ID: "r2", LimitOverrides: messages.LimitOverrides{MaxSteps: 5}}); a.Turn == "" || a.Turn == failed.Turn {
		t.Errorf("got %+v, want a new turn", a)
	}
	s.Until(ada, "turn.failed", 2)
	if model.Calls() != 5 {
		t.Errorf("got %d model calls, want 5", model.Calls())
	}
	ends(t, s.Events(ada))
}

func TestParallelLimit(t *testing.T) { // A32
	var mu sync.Mutex
	var now, most int
	running := func(change int) {
		mu.Lock()
		defer mu.Unlock()
		now += change
		most = max(most, now)
	}
	release := make(chan struct{})
	started := make(chan string, 4)
	work := tool.New("work", "works", tool.ReadOnly, func(_ context.Context, a struct {
		Name string `json:"name"`
	}) (string, error) {
		running(1)
		defer running(-1)
		started <- a.Name
		<-release
		return a.Name, nil
	})
	var calls []scripted.Call
	for i := range 4 {
		calls = append(calls, scripted.Call{ID: messages.CallID(fmt.Sprint("c", i)), Name: "work", Arguments: fmt.Sprintf(`{"name":"w%d"}`, i)})
	}
	model := scripted.New(scripted.Ask(calls...), scripted.Say("done"))
	s := actorstest.New(t, nil)
	node := s.Start(with(config(model, work), func(d *actors.Definition) { d.Parallel = 2 }))
	node.Must(ada, say("u1", "go"))
	<-started
	<-started
	for range 4 {
		release <- struct{}{}
	}
	s.Until(ada, "turn.completed")
	if most != 2 {
		t.Errorf("got %d concurrent tools, want 2", most)
	}
	wantItems(t, model.Requests()[1], "user go", "call c0", "call c1", "call c2", "call c3", "result c0 w0", "result c1 w1", "result c2 w2", "result c3 w3")
}
