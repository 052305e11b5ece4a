package actors_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

func TestTwoInputsInOrder(t *testing.T) { // A1
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("four")), scripted.Say("eight"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	first := node.Must(ada, say("u1", "2+2?"))
	second := node.Must(ada, say("u2", "twice that?"))
	if first.Disposition != messages.Started || second.Disposition != messages.Queued || first.Turn == "" {
		t.Errorf("got answers %+v, %+v, want the first input started and the second queued", first, second)
	}
	gate.Release()
	all := s.Until(ada, "turn.completed", 2)
	ends(t, all)
	wantItems(t, model.Requests()[1], "user 2+2?", "assistant four", "user twice that?")
	if model.Calls() != 2 {
		t.Errorf("got %d model calls, want 2", model.Calls())
	}
}

func TestTwoAgentsRunAtOnce(t *testing.T) { // A5
	one, two := scripted.NewGate(), scripted.NewGate()
	model := scripted.New().For(ada, scripted.Held(one, scripted.Say("a"))).For(bob, scripted.Held(two, scripted.Say("b")))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "go"))
	node.Must(bob, say("u1", "go"))
	<-one.Reached()
	<-two.Reached()
	one.Release()
	two.Release()
	s.Until(ada, "turn.completed")
	s.Until(bob, "turn.completed")
}

func TestThousandInputs(t *testing.T) { // A7
	s := actorstest.New(t, nil)
	node := s.Start(config(scripted.Func(func(providers.Request) scripted.Step { return scripted.Say("ok") })))
	var senders sync.WaitGroup
	for p := range 20 {
		senders.Go(func() {
			for i := range 50 {
				id := fmt.Sprintf("p%d-%d", p, i)
				if a := node.Do(ada, say(id, id)); a.Err != nil {
					t.Error(a.Err)
				}
				if i%7 == 0 {
					if a := node.Do(ada, say(id, id)); a.Err != nil || !a.Duplicate {
						t.Errorf("second %s: got answer %+v, want a duplicate", id, a)
					}
				}
			}
		})
	}
	senders.Wait()
	order := ends(t, s.Until(ada, "turn.completed", 1000))
	if len(order) != 1000 {
		t.Fatalf("got %d turns, want 1000", len(order))
	}
	last := map[string]int{}
	for _, id := range order {
		publisher, number, _ := strings.Cut(id, "-")
		var n int
		_, _ = fmt.Sscan(number, &n)
		if n != last[publisher] {
			t.Errorf("got input %s, want number %d of its publisher", id, last[publisher])
		}
		last[publisher] = n + 1
	}
}

func TestSameIDTwice(t *testing.T) { // A8
	s := actorstest.New(t, nil)
	cfg := config(echo())
	cfg.IdleAfter = 4 * time.Millisecond // passivated between any two commands, or about to be
	node := s.Start(cfg)
	first := node.Must(ada, say("first", "hello"))
	if bobs := node.Must(bob, say("first", "hello")); bobs.Duplicate {
		t.Error("the id of an input to another agent is treated as a duplicate")
	}
	noop := node.Must(ada, messages.Resume{ID: "r1"})
	again := func(when string) {
		t.Helper()
		if a := node.Must(ada, say("first", "hello")); !a.Duplicate || a.N != first.N || a.Turn != first.Turn || a.Disposition != first.Disposition {
			t.Errorf("%s got answer %+v, want a duplicate of %+v", when, a, first)
		}
		if a := node.Must(ada, messages.Resume{ID: "r1"}); !a.Duplicate || a.Noop != noop.Noop || a.N != noop.N {
			t.Errorf("%s got answer %+v, want a duplicate of %+v", when, a, noop)
		}
	}
	again("at once")
	for i := range 100 {
		node.Must(ada, say(fmt.Sprint("u", i), "more"))
	}
	again("a hundred ids later")
	s.Until(ada, "turn.completed", 101)
	node.Crash()
	node = s.Start(cfg)
	again("after a restart")
	if ends(t, s.Events(ada)); len(s.Events(ada)) == 0 || count(s.Events(ada), "input.accepted") != 101 {
		t.Errorf("got %d accepted inputs, want 101", count(s.Events(ada), "input.accepted"))
	}
}

func TestRefusals(t *testing.T) { // A9, A18
	gate := scripted.NewGate()
	s := actorstest.New(t, nil)
	model := scripted.New(scripted.Held(gate, scripted.Say("done")))
	node := s.Start(config(model))
	past := time.Now().Add(-time.Second)
	wantCode(t, node.Do(ada, messages.Input{ID: "u0", Content: messages.TextContent("x"), Deadline: &past}), messages.Expired)
	if len(s.Events(ada)) != 0 {
		t.Errorf("got events %v of an expired input, want none", s.Types(ada))
	}
	// The caller does not wait for the answer. The turn continues.
	node.Ask(ada, say("u1", "go"))
	<-gate.Reached()
	wantCode(t, node.Do(ada, messages.Input{ID: "u2", Content: messages.TextContent("x"), Policy: messages.PolicyReject}), messages.Busy)
	wantCode(t, node.Do(bob, messages.Abort{ID: "a1"}), messages.NotFound)
	wantCode(t, node.Do(actorstest.Agent("nobody", "x"), say("u1", "x")), messages.UnknownKind)
	gate.Release()
	if all := s.Until(ada, "turn.completed"); count(all, "input.accepted") != 1 {
		t.Errorf("got events %v, want one input.accepted", s.Types(ada))
	}
}
