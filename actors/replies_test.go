package actors_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// Commands that arrive while a node stops are all answered, and the node stops.
func TestAskWhileStopping(t *testing.T) {
	var agents []messages.AgentID // of one partition
	for i := 0; len(agents) < 40; i++ {
		if a := actorstest.Agent("test", fmt.Sprint("k", i)); a.Partition() == ada.Partition() {
			agents = append(agents, a)
		}
	}
	for range 20 {
		s := actorstest.New(t, nil)
		node := s.Start(config(echo()))
		node.Must(ada, say("u0", "go"))
		var senders sync.WaitGroup
		for i := range 4 {
			senders.Go(func() {
				for n, a := range agents {
					if answer := node.Do(a, say(fmt.Sprint("u", i, "-", n), "go")); answer.Err != nil && answer.Err.Code != messages.Unavailable {
						t.Error(answer.Err)
					}
				}
			})
		}
		s.Until(agents[5], "input.accepted")
		node.Stop()
		senders.Wait()
	}
}

var _ actors.Observer = (*testObserver)(nil)

func TestRepliesAreOwed(t *testing.T) {
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("hello")), scripted.Say("hello"))
	s := actorstest.New(t, nil)
	first := newObserver()
	cfg := config(model)
	cfg.Observer = first
	node := s.Start(cfg)
	in := say("u1", "hi")
	in.Reply = "box.1"
	node.Must(ada, in)
	<-gate.Reached()
	node.Crash()
	second := newObserver()
	cfg.Observer = second
	node = s.Start(cfg)
	node.Activate(ada) // the newest frame is the acceptance: its reply is sent again
	s.Until(ada, "turn.completed")
	node.Must(ada, messages.Resume{ID: "flush"}) // after the replies of all earlier frames were sent
	third := newObserver()
	cfg.Observer = third
	node.Stop()
	s.Start(cfg).Activate(ada) // the newest frame has no reply to send
	check := func(name string, e *testObserver, want ...string) {
		t.Helper()
		var got []string
		for _, r := range e.received() {
			if r.Subject != "box.1" || r.Input != "u1" || r.Agent != ada {
				t.Errorf("%s: got reply %+v, want one to box.1 of input u1", name, r)
			}
			got = append(got, fmt.Sprint(r.N, r.Event.EventType()))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s got replies %v, want %v", name, got, want)
		}
	}
	check("the first owner", first, "3input.accepted")
	check("the second owner", second, "3input.accepted", "10turn.completed")
	check("the third owner", third)
}

// A terminal event whose reply was not sent before the node crashed is sent by the next node.
func TestTerminalReplyIsResent(t *testing.T) {
	s := actorstest.New(t, nil)
	node := s.Start(config(echo())) // without an observer
	in := say("u1", "hi")
	in.Reply = "box.1"
	node.Must(ada, in)
	s.Until(ada, "turn.completed")
	node.Crash()
	e := newObserver()
	cfg := config(echo())
	cfg.Observer = e
	s.Start(cfg).Activate(ada)
	if r := e.received(); len(r) != 1 || r[0].Event.EventType() != "turn.completed" || r[0].N != 7 {
		t.Errorf("got replies %+v, want turn.completed of event 7", r)
	}
}
