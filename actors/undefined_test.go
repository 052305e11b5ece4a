package actors_test

import (
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// former configures a node on which the kinds middle and leaf are not defined, and root has
// no tools.
func (f *family) former() actors.Config {
	cfg := f.config()
	cfg.Definitions = []actors.Definition{{Kind: "root", Model: "scripted/m"}}
	return cfg
}

// A task for a kind that the node does not define waits until a node does. Its call ends
// once.
func TestTaskWaitsForItsKind(t *testing.T) { // A71
	f := new(family)
	s := actorstest.New(t, nil)
	parents, children := s.Start(f.config()), s.Start(f.former())
	parents.Must(root, say("u1", "pay it"))
	middle := below(t, s, root)
	wantCode(t, children.Do(middle, messages.Task{ID: "t1", Parent: messages.Parent{Caller: messages.Caller{Agent: root.Full(), Turn: "t1", Call: "c9"}}}), messages.Unavailable)
	wantCode(t, children.Do(middle, say("u1", "hello")), messages.UnknownKind)
	wantCode(t, children.Do(middle, messages.Abort{ID: "a1"}), messages.UnknownKind)
	if len(s.Events(middle)) != 0 || count(s.Events(root), "child.failed") != 0 {
		t.Fatalf("got events %v of the middle and %v of the root, want none and no child.failed", s.Types(middle), s.Types(root))
	}
	s.Start(f.config())
	if accepted := actorstest.Of[messages.InputAccepted](s.Until(middle, "input.accepted")); accepted[0].Parent == nil {
		t.Errorf("got input %+v, want one with a parent", accepted[0])
	}
	s.Until(root, "child.waiting")
}

// A call can be stopped while its children are on a node that no longer defines their kind:
// children whose turn was running, and one whose task had yet to arrive. The children end
// with the call, and stay ended when their kind is defined again.
func TestRecallOfUnknownKinds(t *testing.T) { // A70, A71
	for _, begun := range []bool{true, false} {
		f := &family{gate: scripted.NewGate()}
		defer f.gate.Release()
		s := actorstest.New(t, nil)
		parents := s.Start(f.config())
		if !begun {
			s.Start(f.former())
		}
		parents.Must(root, say("u1", "pay it"))
		middle := below(t, s, root)
		agents := []messages.AgentID{middle}
		if begun {
			<-f.gate.Reached()
			agents = append(agents, below(t, s, middle))
			s.Start(f.former())
		}
		parents.Must(root, messages.Interrupt{ID: "i1", Reason: "enough"})
		stopped := actorstest.Of[messages.ChildStopped](s.Until(root, "child.stopped"))
		if want := map[bool]string{true: "aborted", false: "cancelled"}[begun]; string(stopped[0].How) != want {
			t.Errorf("got a child %s, want %s", stopped[0].How, want)
		}
		for _, a := range agents[1:] { // the root is notified of the middle alone
			s.Until(a, "turn.aborted")
		}
		again := s.Start(f.config())
		for _, a := range agents {
			again.Must(a, say("u2", "are you there?"))
			if all := s.Until(a, "turn.started"); begun && count(all, "turn.aborted") != 1 || !begun && count(all, "input.recalled") != 1 {
				t.Errorf("%s: got events %v, want one end of the first input", a, s.Types(a))
			}
		}
		if !begun {
			s.Until(middle, "command.noop") // of the task, which arrives last
		}
		for _, a := range agents {
			if accepted := actorstest.Of[messages.InputAccepted](s.Events(a)); accepted[len(accepted)-1].Input != "u2" {
				t.Errorf("%s: got inputs %+v, want u2 last", a, accepted)
			}
		}
	}
}

// Agents whose kind is no longer defined can be deleted, with a running turn and with
// children, also after a crash.
func TestDeleteOfUnknownKinds(t *testing.T) { // A108
	f := &family{gate: scripted.NewGate()}
	defer f.gate.Release()
	s := actorstest.New(t, nil)
	first := s.Start(f.config())
	first.Must(root, say("u1", "pay it"))
	<-f.gate.Reached()
	middle := below(t, s, root)
	leaf := below(t, s, middle)
	first.Crash()
	other := s.Start(config(echo()))
	for _, a := range []messages.AgentID{middle, root, leaf} {
		other.Must(a, messages.Delete{ID: "d1", Reason: "its kind is gone"})
		wantNothing(t, s.Store(), a)
	}
	wantCode(t, other.Do(root, say("u2", "hello")), messages.UnknownKind)
	last := s.Start(f.config())
	last.Must(root, say("u1", "pay it"))
	s.Until(root, "turn.started", 2)
}

func TestDeleteOfUnknownKindsContinues(t *testing.T) { // A108
	s := actorstest.New(t, nil)
	s.Given(root, messages.AgentCreated{Agent: root.Full()})
	keep(t, s.Store(), root)
	s.Given(root, messages.AgentDeleted{Upto: extent(t, s.Store(), root)})
	if a := s.Start(config(echo())).Activate(root); a.Err != nil {
		t.Fatal(a.Err)
	}
	wantNothing(t, s.Store(), root)
}
