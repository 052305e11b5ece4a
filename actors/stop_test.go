package actors_test

import (
	"context"
	"testing"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

func TestInterrupt(t *testing.T) { // A11, A12, A15, A105
	one, two := scripted.NewGate(), scripted.NewGate()
	model := scripted.New(scripted.Held(one, scripted.Say("never")), scripted.Held(two, scripted.Say("noon")))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	turn := node.Must(ada, say("u1", "a novel")).Turn
	node.Must(ada, say("u2", "the time")) // waits
	<-one.Reached()
	first := node.Must(ada, messages.Interrupt{ID: "i1", Reason: "too long"})
	<-two.Reached()
	second := node.Must(ada, messages.Interrupt{ID: "i1", Reason: "too long"}) // while the next turn runs
	if first.Turn != turn || second.Turn != turn || !second.Duplicate {
		t.Errorf("answers are %+v, %+v", first, second)
	}
	two.Release()
	s.Until(ada, "turn.completed")
	if a := node.Must(ada, messages.Interrupt{ID: "i2"}); a.Noop == "" {
		t.Errorf("nothing ran, and the answer is %+v", a)
	}
	note := "developer The user interrupted the turn above before it was finished. Reason: too long"
	wantItems(t, model.Requests()[1], "user a novel", note, "user the time")
	all := s.Events(ada)
	ends(t, all)
	if count(all, "turn.aborted") != 1 {
		t.Errorf("%v", s.Types(ada))
	}
}

func TestAbort(t *testing.T) { // A12
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("never")), scripted.Say("hello"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "a poem"))
	<-gate.Reached()
	node.Must(ada, messages.Abort{ID: "a1", Reason: "no"})
	node.Must(ada, say("u2", "hi"))
	ends(t, s.Until(ada, "turn.completed"))
	wantItems(t, model.Requests()[1], "user a poem", "user hi")
}

func TestInterruptWithTools(t *testing.T) { // A14
	canceled, running := make(chan struct{}), make(chan struct{})
	quick := toolOf("quick", tool.Pure, func(context.Context) (string, error) { return "quick", nil })
	slow := toolOf("slow", tool.Once, func(ctx context.Context) (string, error) {
		close(running)
		<-ctx.Done()
		close(canceled)
		return "late", nil
	})
	waiting := toolOf("waiting", tool.Pure, func(context.Context) (string, error) {
		t.Error("the waiting tool ran")
		return "", nil
	})
	model := scripted.New(scripted.Ask(call("c1", "quick"), call("c2", "slow"), call("c3", "waiting")), scripted.Say("ok"))
	s := actorstest.New(t, nil)
	node := s.Start(with(config(model, quick, slow, waiting), one))
	node.Must(ada, say("u1", "go"))
	<-running
	node.Must(ada, say("u2", "never mind"))
	node.Must(ada, messages.Interrupt{ID: "i1"})
	<-canceled
	ends(t, s.Until(ada, "turn.completed"))
	wantItems(t, model.Requests()[1], "user go", "call c1", "call c2", "call c3", "result c1 quick",
		"result c2 stopped while it ran: it may or may not have had its effect",
		"result c3 not run: the turn was stopped before its start",
		"developer The user interrupted the turn above before it was finished.", "user never mind")
	if all := s.Events(ada); count(all, "tool.started") != 2 || count(all, "tool.completed") != 1 {
		t.Errorf("%v", s.Types(ada))
	}
}
