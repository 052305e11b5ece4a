package actors_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// A tool that does not return whether it needs approval blocks nothing: a person is asked.
func TestApprovalOfHangingTool(t *testing.T) { // A40, A102
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hangs := gatedTool{Tool: new(recorder).tool("pay", tool.Pause), approval: tool.Asked, want: func(json.RawMessage) (bool, error) {
			<-release
			return false, nil
		}}
		s := actorstest.New(t, nil)
		node := s.Start(config(scripted.New(scripted.Ask(asks("c1", "pay", `{}`))), hangs))
		defer end(node)
		defer close(release)
		node.Must(ada, say("u1", "go"))
		<-time.After(2 * time.Minute)
		if all := s.Events(ada); count(all, "approval.requested") != 1 || count(all, "turn.paused") != 1 {
			t.Errorf("got events %v, want one approval requested and the turn paused", s.Types(ada))
		}
	})
}

// A command with the id of another command, or with the same id and other content, is
// refused. It is not answered as a duplicate.
func TestIDOfAnotherCommand(t *testing.T) { // A8
	s := actorstest.New(t, nil)
	node := s.Start(config(echo()))
	node.Must(ada, say("u1", "go"))
	s.Until(ada, "turn.completed")
	node.Must(ada, messages.Interrupt{ID: "x"})
	before := len(s.Events(ada))
	wantCode(t, node.Do(ada, say("x", "hello")), messages.Conflict)
	wantCode(t, node.Do(ada, messages.Clear{ID: "u1"}), messages.Conflict)
	wantCode(t, node.Do(ada, say("u1", "go away")), messages.Conflict)
	wantCode(t, node.Do(ada, under(messages.PolicyInterrupt, "u1", "go")), messages.Conflict)
	wantCode(t, node.Do(ada, messages.Interrupt{ID: "x", Turn: "t1"}), messages.Conflict)
	late := say("u1", "go")
	late.Deadline = new(time.Time)
	if a := node.Must(ada, late); !a.Duplicate {
		t.Errorf("the same input with another deadline: got answer %+v, want a duplicate", a)
	}
	node.Crash()
	node = s.Start(config(echo()))
	wantCode(t, node.Do(ada, messages.Resume{ID: "x"}), messages.Conflict)
	if a := node.Must(ada, messages.Interrupt{ID: "x"}); !a.Duplicate {
		t.Errorf("the same command again: got answer %+v, want a duplicate", a)
	}
	if n := count(s.Events(ada), "agent.activated"); len(s.Events(ada)) != before+n {
		t.Errorf("got events %v, want only agent.activated after the refusals", s.Types(ada))
	}
}

// An input that waits, whose id has left the window, is a duplicate when it is sent again.
// Another under its id, or under that of an input of the running turn or of a timer, is refused.
func TestInputThatWaitsLong(t *testing.T) { // A8
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		s := actorstest.New(t, nil)
		node := s.Start(config(scripted.New(scripted.Ask(call("c1", "pay"))), gatedTool{Tool: r.tool("pay", tool.Pause), approval: tool.Always}))
		defer end(node)
		node.Must(ada, say("u1", "go"))
		s.Until(ada, "turn.paused")
		waits := node.Must(ada, say("u2", "and then this"))
		node.Must(ada, later("u3", "tick", after(time.Minute)))
		<-time.After(16 * time.Minute)
		s.Until(ada, "timer.fired")
		for i := range 4096 {
			node.Must(ada, messages.SetState{ID: fmt.Sprint("s", i), Patch: []byte(`{}`)})
		}
		if a := node.Must(ada, say("u2", "and then this")); !a.Duplicate || a.N != waits.N {
			t.Errorf("an input that waits, again: got answer %+v, want that of event %d as a duplicate", a, waits.N)
		}
		for _, c := range []messages.Input{say("u1", "go"), say("u2", "and then that"), say("u3", "tick"), later("u2", "and then this", after(time.Minute))} {
			wantCode(t, node.Do(ada, c), messages.Conflict)
		}
		if n := count(s.Events(ada), "input.accepted"); n != 3 {
			t.Errorf("got %d inputs accepted, want 3", n)
		}
	})
}

// The inputs that an agent accepts can end in one frame, however many are sent to it.
func TestSteersAreBounded(t *testing.T) { // A6, A13, A102
	gate := scripted.NewGate()
	s := actorstest.New(t, nil)
	node := s.Start(with(config(scripted.New(scripted.Held(gate, scripted.Say("never")), scripted.Say("fresh"))), func(d *actors.Definition) { d.MaxQueue = 2_000 }))
	node.Must(ada, say("u1", "go"))
	<-gate.Reached()
	accepted := 1
	for n := range 4000 {
		in := policy(longID(n), "x", messages.PolicySteer)
		if n%2 == 0 {
			in.Policy = messages.PolicyQueue
		}
		if a := node.Do(ada, in); a.Err == nil {
			accepted++
		} else if wantCode(t, a, messages.QueueFull); t.Failed() {
			return
		}
	}
	node.Must(ada, messages.Clear{ID: "c", Reason: "too much"})
	all := s.Events(ada)
	ends(t, all)
	if n := count(all, "input.accepted"); n != accepted || n < 500 {
		t.Errorf("got %d inputs accepted, want the %d of the answers", n, accepted)
	}
	node.Must(ada, say("after", "go"))
	ends(t, s.Until(ada, "turn.completed"))
}

// longID returns an id of the greatest length.
func longID(n int) string {
	id := make([]byte, messages.MaxID)
	for i := range id {
		id[i] = 'a' + byte(n%26)
		n /= 26
	}
	return string(id)
}
