package actors_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// policy returns an input with a policy.
func policy(id, text string, p messages.Policy) messages.Input {
	in := say(id, text)
	in.Policy = p
	return in
}

func TestSteer(t *testing.T) { // A2, A3
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Ask(call("c1", "look"))), scripted.Say("done"), scripted.Say("fresh"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model, new(recorder).tool("look", tool.ReadOnly)))
	first := node.Must(ada, policy("u1", "go", messages.PolicySteer)) // A3
	if first.Disposition != messages.Started {
		t.Errorf("an input to an idle agent: got %s, want %s", first.Disposition, messages.Started)
	}
	<-gate.Reached()
	for n := range 3 {
		a := node.Must(ada, policy(fmt.Sprint("j", n), fmt.Sprint("also ", n), messages.PolicySteer))
		if a.Disposition != messages.Steered || a.Turn != first.Turn {
			t.Errorf("got answer %+v, want steered to turn %s", a, first.Turn)
		}
	}
	gate.Release()
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	wantItems(t, model.Requests()[1], "user go", "call c1", "result c1 look{}", "user also 0", "user also 1", "user also 2")
	if done := actorstest.Of[messages.TurnCompleted](all)[0]; len(done.Inputs) != 4 {
		t.Errorf("got a turn of inputs %v, want 4", done.Inputs)
	}
	if a := node.Must(ada, policy("u2", "new", messages.PolicySteer)); a.Disposition != messages.Started || a.Turn == first.Turn {
		t.Errorf("after the end: got answer %+v, want a new turn", a)
	}
	ends(t, s.Until(ada, "turn.completed", 2))
}

// An input that arrives after an abort does not steer the aborted turn. It starts a turn of
// its own, while the abort is being appended and while the tool still stops.
func TestSteerBehindAbort(t *testing.T) { // A4
	synctest.Test(t, func(t *testing.T) {
		running, release, stop := make(chan struct{}), make(chan struct{}), make(chan struct{})
		slow := toolOf("slow", tool.Pause, func(ctx context.Context) (string, error) {
			close(running)
			<-ctx.Done()
			<-stop
			return "late", nil
		})
		own := scripted.NewGate()
		model := scripted.New(scripted.Ask(call("c1", "slow")), scripted.Held(own, scripted.Say("fresh")), scripted.Say("and more"))
		s := actorstest.New(t, nil)
		cfg := config(model, slow)
		cfg.Store.Log = &refusing{s.Store().Log, func(e eventlog.Entry) error {
			if count(e.Frame.Events, "turn.aborted") > 0 {
				<-release
			}
			return nil
		}}
		node := s.Start(cfg)
		first := node.Must(ada, say("u1", "go")).Turn
		<-running
		aborted := node.Ask(ada, messages.Abort{ID: "a1", Reason: "enough"})
		synctest.Wait() // its frame is being appended
		meanwhile := node.Ask(ada, policy("j1", "this instead", messages.PolicySteer))
		synctest.Wait()
		close(release)
		if a := aborted(); a.Err != nil || a.Turn != first {
			t.Errorf("the abort: got answer %+v, want turn %s", a, first)
		}
		second := meanwhile()
		if second.Err != nil || second.Disposition != messages.Started || second.Turn == first {
			t.Fatalf("the input: got answer %+v, want a new turn", second)
		}
		<-own.Reached() // while the tool still stops
		if a := node.Must(ada, policy("j2", "hurry", messages.PolicySteer)); a.Disposition != messages.Steered || a.Turn != second.Turn {
			t.Errorf("the input that steers: got answer %+v, want turn %s", a, second.Turn)
		}
		close(stop)
		synctest.Wait()
		own.Release()
		all := s.Until(ada, "turn.completed")
		ends(t, all)
		lost := "result c1 stopped while it ran: it may or may not have had its effect"
		wantItems(t, model.Requests()[1], "user go", "call c1", lost, "user this instead")
		wantItems(t, model.Requests()[2], "user go", "call c1", lost, "user this instead", "assistant fresh", "user hurry")
		if done := actorstest.Of[messages.TurnAborted](all); len(done) != 1 || done[0].Turn != first || fmt.Sprint(done[0].Inputs) != "[u1]" {
			t.Errorf("got aborted turns %+v, want %s with input u1", done, first)
		}
		if n := count(all, "tool.completed"); n != 0 {
			t.Errorf("got events %v, want no result of the aborted call", s.Types(ada))
		}
		end(node)
	})
}

// An input that steers during the last model call of a turn gets another call, or a turn of
// its own if no call is left.
func TestSteerAtTheEnd(t *testing.T) { // A2, A6
	for name, c := range map[string]struct {
		most  int
		turns int
	}{"another call": {2, 1}, "no call left": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			gate := scripted.NewGate()
			model := scripted.New(scripted.Held(gate, scripted.Say("first")), scripted.Say("second"))
			s := actorstest.New(t, nil)
			node := s.Start(config(model))
			in := say("u1", "go")
			in.Options.MaxSteps = c.most
			node.Must(ada, in)
			<-gate.Reached()
			node.Must(ada, policy("j1", "wait", messages.PolicySteer))
			gate.Release()
			all := s.Until(ada, "turn.completed", c.turns)
			ends(t, all)
			wantItems(t, model.Requests()[1], "user go", "assistant first", "user wait")
			if n := count(all, "input.requeued"); n != c.turns-1 {
				t.Errorf("got %d inputs requeued, want %d", n, c.turns-1)
			}
		})
	}
}

func TestInterruptPolicy(t *testing.T) { // A6
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("never")), scripted.Say("at once"), scripted.Say("later"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "go"))
	<-gate.Reached()
	node.Must(ada, say("u2", "queued"))
	a := node.Must(ada, policy("u3", "stop, do this", messages.PolicyInterrupt))
	if a.Disposition != messages.Started || a.Turn == "" {
		t.Errorf("got answer %+v, want a turn started", a)
	}
	if again := node.Must(ada, policy("u3", "stop, do this", messages.PolicyInterrupt)); !again.Duplicate || again.Turn != a.Turn {
		t.Errorf("the same input again: got answer %+v, want a duplicate", again)
	}
	all := s.Until(ada, "turn.completed", 2)
	if order := ends(t, all); fmt.Sprint(order) != "[u1 u3 u2]" {
		t.Errorf("got turns of %v, want u1, u3, u2", order)
	}
	if out := actorstest.Of[messages.TurnAborted](all)[0]; out.By != "input" || out.Note == "" {
		t.Errorf("got %+v, want an abort by the input with a note", out)
	}
	if got := brief(model.Requests()[1]); len(got) != 3 || got[2] != "user stop, do this" {
		t.Errorf("got items %q, want three, the last of u3", got)
	}
}

func TestClearAndCancel(t *testing.T) { // A10, A13
	gate := scripted.NewGate()
	model := scripted.New(scripted.Say("one"), scripted.Held(gate, scripted.Say("never")), scripted.Say("fresh"))
	s := actorstest.New(t, nil)
	observer, cfg := newObserver(), config(model)
	cfg.Observer = observer
	node := s.Start(cfg)
	node.Must(ada, say("u1", "first"))
	s.Until(ada, "turn.completed")
	node.Must(ada, messages.SetState{ID: "s", Patch: []byte(`{"a":1}`)})
	node.Must(ada, say("u2", "second"))
	<-gate.Reached()
	node.Must(ada, policy("j1", "steered", messages.PolicySteer))
	for _, id := range []string{"u3", "u4"} {
		in := say(id, "queued")
		in.Reply = "my.inbox"
		node.Must(ada, in)
	}
	wantCode(t, node.Do(ada, messages.Cancel{ID: "w1", Input: "u2"}), messages.Conflict)
	wantCode(t, node.Do(ada, messages.Cancel{ID: "w2", Input: "u1"}), messages.NotFound)
	node.Must(ada, messages.Cancel{ID: "w3", Input: "u3", Reason: "not needed"})
	node.Must(ada, messages.Clear{ID: "c", Reason: "anew"})
	var replies []string
	for _, r := range observer.received() {
		replies = append(replies, r.Event.EventType()+" "+r.Input)
	}
	wantLines(t, "replies", replies, "input.accepted u3", "input.accepted u4", "input.cancelled u3", "input.dropped u4")
	var data projections.State
	for n, ev := range s.Events(ada) {
		data.Apply(messages.EventNumber(n+1), ev)
	}
	if got := string(data.JSON()); got != "{}" {
		t.Errorf("got state %s, want {}", got)
	}
	if a := node.Must(ada, messages.Cancel{ID: "w4", All: true}); a.Noop == "" {
		t.Errorf("cancel with nothing queued: got answer %+v, want a noop", a)
	}
	if a := node.Must(ada, messages.Resume{ID: "r"}); a.Noop == "" {
		t.Errorf("resume with nothing paused: got answer %+v, want a noop", a)
	}
	node.Must(ada, say("u5", "after"))
	all := s.Until(ada, "turn.completed", 2)
	ends(t, all)
	wantItems(t, model.Requests()[2], "user after")
	aborted := actorstest.Of[messages.TurnAborted](all)[0]
	if aborted.Reason != "clear" || aborted.Note != "" || fmt.Sprint(aborted.Inputs) != "[u2 j1]" {
		t.Errorf("got %+v, want an abort by clear of u2 and j1", aborted)
	}
	if a := node.Must(ada, say("u1", "first")); !a.Duplicate {
		t.Errorf("an id processed before the clear: got answer %+v, want a duplicate", a)
	}
}

// An interrupt that is delivered twice has one effect, also if the second delivery arrives
// during the next turn.
func TestStopTwice(t *testing.T) { // A105
	gate, next := scripted.NewGate(), scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("never")), scripted.Held(next, scripted.Say("done")))
	s := actorstest.New(t, nil)
	node := s.Start(config(model))
	node.Must(ada, say("u1", "go"))
	<-gate.Reached()
	node.Must(ada, say("u2", "next"))
	node.Must(ada, messages.Interrupt{ID: "i"})
	<-next.Reached()
	if a := node.Must(ada, messages.Interrupt{ID: "i"}); !a.Duplicate {
		t.Errorf("the second delivery: got answer %+v, want a duplicate", a)
	}
	next.Release()
	all := s.Until(ada, "turn.completed")
	ends(t, all)
	if n := count(all, "turn.aborted"); n != 1 {
		t.Errorf("got %d aborted turns, want 1", n)
	}
}
