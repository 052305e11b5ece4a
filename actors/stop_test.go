package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

func TestInterrupt(t *testing.T) { // A105
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
		t.Errorf("got answers %+v, %+v, want turn %s and a duplicate", first, second, turn)
	}
	two.Release()
	s.Until(ada, "turn.completed")
	if a := node.Must(ada, messages.Interrupt{ID: "i2"}); a.Noop == "" {
		t.Errorf("interrupt of an idle agent: got answer %+v, want a noop", a)
	}
	note := "developer The user interrupted the turn above before it was finished. Reason: too long"
	wantItems(t, model.Requests()[1], "user a novel", note, "user the time")
	all := s.Events(ada)
	ends(t, all)
	if count(all, "turn.aborted") != 1 {
		t.Errorf("got events %v, want one turn.aborted", s.Types(ada))
	}
}

// Of two interrupts with different ids, the second arrives while the first ends the turn. It
// finds nothing to interrupt, and the queued turn that starts then runs on. A third, which
// arrives while that turn runs, interrupts it.
func TestInterruptTwice(t *testing.T) { // A11
	for _, second := range []messages.Command{messages.Interrupt{ID: "i2", Reason: "again"}, messages.Abort{ID: "i2"}} {
		t.Run(second.CommandType(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { interruptTwice(t, second) })
		})
	}
}

func interruptTwice(t *testing.T, second messages.Command) {
	release := make(chan struct{})
	one, two, three := scripted.NewGate(), scripted.NewGate(), scripted.NewGate()
	model := scripted.New(scripted.Held(one, scripted.Say("never")), scripted.Held(two, scripted.Say("noon")), scripted.Held(three, scripted.Say("never")))
	s := actorstest.New(t, nil)
	cfg := config(model)
	cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
		if e.Frame.Cause.ID == "i1" {
			<-release
		}
		return nil
	}}
	node := s.Start(cfg)
	turn := node.Must(ada, say("u1", "a novel")).Turn
	<-one.Reached()
	node.Must(ada, say("u2", "the time"))
	first := node.Ask(ada, messages.Interrupt{ID: "i1", Reason: "too long"})
	synctest.Wait() // its frame is being appended
	stop := node.Ask(ada, second)
	behind := node.Ask(ada, say("u3", "the date"))
	synctest.Wait()
	close(release)
	if a := first(); a.Err != nil || a.Turn != turn || a.Noop != "" {
		t.Errorf("the first: got answer %+v, want turn %s", a, turn)
	}
	if a := stop(); a.Err != nil || !strings.Contains(a.Noop, "nothing to "+second.CommandType()) {
		t.Fatalf("the second: got answer %+v, want a noop", a)
	}
	if a := behind(); a.Err != nil {
		t.Error(a.Err)
	}
	<-two.Reached()
	two.Release()
	<-three.Reached()
	note := "developer The user interrupted the turn above before it was finished. Reason: too long"
	wantItems(t, model.Requests()[1], "user a novel", note, "user the time")
	<-time.After(time.Millisecond) // on the fake clock
	if a := node.Must(ada, messages.Interrupt{ID: "i3"}); a.Noop != "" || a.Turn == turn {
		t.Errorf("the third: got answer %+v, want the next turn", a)
	}
	all := s.Events(ada)
	if order := ends(t, all); fmt.Sprint(order) != "[u1 u2 u3]" || count(all, "turn.completed") != 1 || count(all, "turn.aborted") != 2 {
		t.Errorf("got events %v, want turns u1, u2, u3 with the first and the last aborted", s.Types(ada))
	}
	if again := node.Must(ada, second); !again.Duplicate || again.Noop == "" {
		t.Errorf("the second again: got answer %+v, want a duplicate of the noop", again)
	}
	end(node)
}

// An interrupt that the owner received before a queued turn started does not stop that turn,
// however late the agent handles it. After an input with the interrupt policy, it stops the
// turn of that input.
func TestInterruptReceivedBefore(t *testing.T) { // A11
	one, two, three := scripted.NewGate(), scripted.NewGate(), scripted.NewGate()
	model := scripted.New(scripted.Held(one, scripted.Say("never")), scripted.Held(two, scripted.Say("never")), scripted.Held(three, scripted.Say("never")))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "a novel"))
	<-one.Reached()
	received := time.Now()
	node.Must(ada, say("u2", "the time"))
	node.Must(ada, messages.Interrupt{ID: "i1"})
	<-two.Reached()
	if a := node.Deliver(&actors.Deliver{Agent: ada, Command: messages.Interrupt{ID: "i2"}, Received: received}); a.Noop == "" {
		t.Errorf("the second: got answer %+v, want a noop", a)
	}
	third := node.Must(ada, policy("u3", "this now", messages.PolicyInterrupt))
	<-three.Reached()
	if a := node.Deliver(&actors.Deliver{Agent: ada, Command: messages.Interrupt{ID: "i3"}, Received: received}); a.Turn != third.Turn {
		t.Errorf("the interrupt after u3: got answer %+v, want turn %s", a, third.Turn)
	}
	ends(t, s.Events(ada))
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
	quick := toolOf("quick", tool.ReadOnly, func(context.Context) (string, error) { return "quick", nil })
	slow := toolOf("slow", tool.Pause, func(ctx context.Context) (string, error) {
		close(running)
		<-ctx.Done()
		close(canceled)
		return "late", nil
	})
	waiting := toolOf("waiting", tool.ReadOnly, func(context.Context) (string, error) {
		t.Error("the tool that waited ran")
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
		t.Errorf("got events %v, want two tools started and one completed", s.Types(ada))
	}
}
