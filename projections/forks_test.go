package projections

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// A clear takes a fork back to what its parent had seen when the fork was made, without the turn
// that was running then. A81
func TestClearOfAForkReturnsToItsBaseline(t *testing.T) {
	var h History
	var s State
	var d Decisions
	n := messages.EventNumber(0)
	apply := func(events ...messages.Event) {
		for _, ev := range events {
			n++
			for _, v := range []View{&h, &s, &d} {
				v.Apply(n, ev)
			}
		}
	}
	apply(input("u1", "one"), started("t1", "u1"), answer("t1", "first"), messages.TurnCompleted{Turn: "t1"},
		messages.StatePatched{Patch: []byte(`{"a":1}`)}, messages.ApprovalGranted{Tool: "mail", Remember: true},
		input("u2", "two"), started("t2", "u2"), answer("t2", "let me see", "c1"), input("u3", "waits"))
	apply(messages.AgentForked{Turn: "t2"})
	if got := lines(&h); !strings.Contains(got, "let me see") {
		t.Errorf("the fork lacks the running turn: got\n%s", got)
	}
	for range 2 {
		apply(messages.TurnAborted{Turn: "t2"}, input("u4", "four"), started("t4", "u4"), answer("t4", "fourth"),
			messages.StatePatched{Patch: []byte(`{"a":2,"b":3}`)}, messages.ApprovalForgotten{Tool: "mail"}, messages.AgentCleared{})
		got := lines(&h)
		if !strings.Contains(got, "first") || strings.Contains(got, "let me see") || strings.Contains(got, "fourth") {
			t.Errorf("cleared: got\n%s\nwant the first turn alone", got)
		}
		if items := h.Items(); len(items) != 2 || h.Len() != 2 || len(h.open) > 0 || len(h.waiting) > 0 {
			t.Errorf("cleared: %d items, %d calls open, %d inputs waiting, want 2 items", len(items), len(h.open), len(h.waiting))
		}
		if got := string(s.JSON()); got != `{"a":1}` {
			t.Errorf("cleared: state %s", got)
		}
		if _, remembered := d.Of("mail"); !remembered {
			t.Error("cleared: a decision that the parent remembered is forgotten")
		}
	}
	apply(messages.AgentDeleted{})
	if got := lines(&h); got != "" || string(s.JSON()) != "{}" || len(d.List) > 0 {
		t.Errorf("deleted: got history %q, state %s, decisions %v", got, s.JSON(), d.List)
	}
}

// Forks lists what was asked for until it is refused, and forgets the forks of a parent in a fork.
func TestForks(t *testing.T) {
	var f Forks
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.At(at, messages.ClaimedBy("ann"))
	f.Apply(5, messages.ForkRequested{Fork: "default/a/b", At: 3, Begin: "f1", Reason: "what if"})
	f.Apply(6, messages.ForkRequested{Fork: "default/a/c", At: 4, Begin: "f2"})
	before := f.Lines()
	f.Apply(7, messages.ForkSettled{Fork: "default/a/b", Begin: "f1", N: 4})
	f.Apply(8, messages.ForkSettled{Fork: "default/a/c", Begin: "f2", Refused: messages.Conflict})
	b := messages.AgentID{Tenant: "default", Kind: "a", Key: "b"}
	if got := f.Lines(); len(got) != 1 || got[0].Agent != b || got[0].Status != ForkBegun || got[0].At != 3 || got[0].N != 5 || got[0].Reason != "what if" || !got[0].Requested.Equal(at) || got[0].Person.Name != "ann" {
		t.Errorf("got %+v", got)
	}
	if len(before) != 2 || before[0].Status != ForkPending {
		t.Errorf("an earlier list was changed: %+v", before)
	}
	if f.Origin != nil || f.Dry() {
		t.Errorf("no fork: got origin %+v, dry %t", f.Origin, f.Dry())
	}
	f.Apply(8, messages.ForkSettled{Fork: "default/a/c", Begin: "f2", N: 5}) // after all
	if got := f.Lines(); len(got) != 2 || got[1].Agent.Key != "c" || got[1].Status != ForkBegun || got[1].At != 4 || got[1].N != 8 || got[1].Begin != "f2" {
		t.Errorf("a fork that begins after it was refused: got %+v", got)
	}
	f.Apply(9, messages.ToolsEnabled{}) // nothing to enable
	f.Apply(10, messages.AgentForked{Agent: "default/a/d", Parent: "default/a/b", At: 9})
	if f.Origin == nil || f.Origin.Parent != b || f.Origin.At != 9 || !f.Dry() || len(f.List) > 0 {
		t.Errorf("forked: got %+v", f)
	}
	f.Apply(11, messages.ToolsEnabled{})
	if f.Dry() {
		t.Error("tools were enabled, and the fork is dry")
	}
	if f.Apply(12, messages.AgentDeleted{}); f.Origin != nil {
		t.Error("deleted: it is a fork still")
	}
}

// A clear of an imported agent drops what was imported, too: it is no baseline.
func TestClearOfAnImportedAgent(t *testing.T) { // A83
	var h History
	var s State
	var d Decisions
	f := &messages.Frame{First: 1, Events: []messages.Event{
		messages.StatePatched{Patch: []byte(`{"a":1}`)},
		messages.InputAccepted{Input: "u1", Content: messages.TextContent("Hi")},
		messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}},
		messages.ModelRequested{Turn: "t1", Call: "m1", Inputs: []string{"u1"}},
		messages.ApprovalGranted{Turn: "t1", Call: "c1", Tool: "pay", Remember: true},
		messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}},
		messages.AgentImported{Last: 6},
	}}
	Fold(f, 0, &h, &s, &d)
	if len(h.Items()) == 0 || len(d.List) != 1 || string(s.JSON()) != `{"a":1}` {
		t.Fatalf("imported: got history %v, decisions %v, state %s", h.Items(), d.List, s.JSON())
	}
	Fold(&messages.Frame{First: 8, Events: []messages.Event{messages.AgentCleared{}}}, 0, &h, &s, &d)
	if len(h.Items()) != 0 || len(d.List) != 0 || string(s.JSON()) != `{}` {
		t.Errorf("cleared: got history %v, decisions %v, state %s", h.Items(), d.List, s.JSON())
	}
}
