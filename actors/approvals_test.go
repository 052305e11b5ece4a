package actors_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/actorstest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// gatedTool is a tool whose calls need approval as approval or want decides.
type gatedTool struct {
	tool.Tool
	approval tool.Approval
	repeats  bool
	expiry   time.Duration
	want     func(json.RawMessage) (bool, error)
}

func (g gatedTool) Spec() tool.Spec {
	s := g.Tool.Spec()
	s.Approval, s.ApproveRepeats, s.ApprovalTimeout = g.approval, g.repeats, g.expiry
	return s
}

func (g gatedTool) NeedsApproval(arguments json.RawMessage) (bool, error) {
	if g.want == nil {
		return true, nil
	}
	return g.want(arguments)
}

func asks(id, name, arguments string) scripted.Call {
	return scripted.Call{ID: messages.CallID(id), Name: name, Arguments: arguments}
}

// TestApproval pauses a turn for one of two calls, crashes the node, and decides the call on
// the next one.
func TestApproval(t *testing.T) { // A25, A40, A41, A43, A44, A46
	var r recorder
	tools := []tool.Tool{gatedTool{Tool: r.tool("pay", tool.Pause), approval: tool.Always}, r.tool("look", tool.ReadOnly)}
	model := scripted.New(scripted.Ask(asks("c1", "pay", `{"n":1}`), asks("c2", "look", `{"n":2}`), asks("c3", "pay", `{"n":3}`), asks("c4", "pay", `{"n":4}`)), scripted.Say("done"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model, tools...))
	node.Must(ada, say("u1", "go"))
	s.Until(ada, "turn.paused")
	wantLines(t, "ran ungated", r.calls(), `{"n":2}`)

	node.Crash()
	node = s.Start(config(model, tools...))
	if a := node.Must(ada, messages.Input{ID: "u2", Policy: messages.PolicySteer, Content: messages.TextContent("and this")}); a.Disposition != messages.Steered {
		t.Errorf("got disposition %s, want steered", a.Disposition)
	}
	wantCode(t, node.Do(ada, messages.Approve{ID: "a1", Call: "c1", ArgsHash: messages.HashArguments(`{"n":100}`)}), messages.Conflict)
	wantCode(t, node.Do(ada, messages.Approve{ID: "a2", Call: "c9"}), messages.NotFound)
	wantCode(t, node.Do(ada, messages.Approve{ID: "a3", Call: "c2"}), messages.Conflict)
	node.Must(ada, messages.Approve{ID: "a4", Call: "c1", ArgsHash: messages.HashArguments(`{"n":1}`)})
	s.Until(ada, "tool.completed", 2)
	s.Until(ada, "turn.paused", 2) // c3 and c4 are undecided
	if a := node.Must(ada, messages.Approve{ID: "a4", Call: "c1", ArgsHash: messages.HashArguments(`{"n":1}`)}); !a.Duplicate {
		t.Errorf("the same id again: got %+v, want a duplicate", a)
	}
	if a := node.Must(ada, messages.Approve{ID: "a5", Call: "c1"}); a.Noop == "" {
		t.Errorf("the same decision again: got %+v, want a no-op", a)
	}
	wantCode(t, node.Do(ada, messages.Deny{ID: "a6", Call: "c1"}), messages.Conflict)
	empty := ""
	node.Must(ada, messages.Deny{ID: "a7", Call: "c3", Text: &empty})
	if n := count(s.Events(ada), "turn.resumed"); n != 1 {
		t.Errorf("got %d turn.resumed while c4 is undecided, want 1", n)
	}
	node.Must(ada, messages.Deny{ID: "a8", Call: "c4"})
	ends(t, s.Until(ada, "turn.completed"))
	wantLines(t, "ran", r.calls(), `{"n":2}`, `{"n":1}`)
	wantItems(t, model.Requests()[1], "user go", "call c1", "call c2", "call c3", "call c4",
		`result c1 pay{"n":1}`, `result c2 look{"n":2}`, "result c3 ", "result c4 "+messages.DeniedText, "user and this")
}

func TestApprovalIsRemembered(t *testing.T) { // A42
	var r recorder
	tools := []tool.Tool{gatedTool{Tool: r.tool("pay", tool.Pause), approval: tool.Always}, gatedTool{Tool: r.tool("mail", tool.Pause), approval: tool.Always}}
	turnOf := scripted.Func(func(q providers.Request) scripted.Step {
		if last := q.Items[len(q.Items)-1]; last.Type == messages.ItemMessage && last.Role == messages.RoleUser {
			return scripted.Ask(asks("", "pay", `{"for":"`+last.Content.Text()+`"}`), asks("", "mail", `{}`))
		}
		return scripted.Say("done")
	})
	s := actorstest.New(t, nil)
	node := s.Start(config(turnOf, tools...))
	node.Must(ada, say("u1", "one"))
	paused := actorstest.Of[messages.TurnPaused](s.Until(ada, "turn.paused"))[0]
	no := "never mail"
	node.Must(ada, messages.Approve{ID: "a1", Call: paused.Calls[0], Remember: true})
	node.Must(ada, messages.Deny{ID: "a2", Call: paused.Calls[1], Text: &no, Remember: true})
	s.Until(ada, "turn.completed")

	node.Crash()
	node = s.Start(config(turnOf, tools...))
	node.Must(ada, say("u2", "two"))
	all := s.Until(ada, "turn.completed", 2)
	if n := count(all, "approval.requested"); n != 2 {
		t.Errorf("got %d approval.requested, want 2: %v", n, s.Types(ada))
	}
	denials := actorstest.Of[messages.ApprovalDenied](all)
	if last := denials[len(denials)-1]; last.By != "remembered" || last.Text != no {
		t.Errorf("got the denial %+v, want one by remembered with the text %q", last, no)
	}
	wantLines(t, "ran", r.calls(), `{"for":"one"}`, `{"for":"two"}`)

	node.Must(bob, say("u1", "bob"))
	s.Until(bob, "turn.paused") // another agent needs its own approval
	if a := node.Must(ada, messages.Forget{ID: "f1", Tool: "pay"}); a.Noop != "" {
		t.Errorf("the first forget: got no-op %q, want none", a.Noop)
	}
	if a := node.Must(ada, messages.Forget{ID: "f2", Tool: "pay"}); a.Noop == "" {
		t.Errorf("the second forget: got %+v, want a no-op", a)
	}
	node.Must(ada, say("u3", "three"))
	s.Until(ada, "approval.requested", 2+1)
	node.Must(ada, messages.Clear{ID: "c1"})
	node.Must(ada, say("u4", "four"))
	s.Until(ada, "approval.requested", 2+1+2) // a clear removes remembered decisions
}

// A remembered denial is written once for each call. An answer whose denials do not fit in a
// frame fails its model call, and none of them is appended.
func TestRememberedDenialsAreManyBytes(t *testing.T) { // A42, A102
	pay := gatedTool{Tool: new(recorder).tool("pay", tool.Pause), approval: tool.Always}
	many := make([]scripted.Call, 60)
	for i := range many {
		many[i] = asks("", "pay", fmt.Sprintf(`{"n":%d}`, i))
	}
	model := scripted.New(scripted.Ask(asks("c1", "pay", `{}`)), scripted.Say("done"), scripted.Ask(many...))
	s := actorstest.New(t, nil)
	node := s.Start(config(model, pay))
	node.Must(ada, say("u1", "go"))
	s.Until(ada, "turn.paused")
	long := strings.Repeat("x", messages.MaxDenial+1)
	wantCode(t, node.Do(ada, messages.Deny{ID: "d1", Call: "c1", Text: &long}), messages.TooLarge)
	long = long[1:]
	node.Must(ada, messages.Deny{ID: "d2", Call: "c1", Text: &long, Remember: true})
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "go"))
	all := s.Until(ada, "turn.failed")
	ends(t, all)
	if f := actorstest.Of[messages.ModelFailed](all); len(f) != 1 || f[0].Kind != "too_large" || count(all, "model.restarted") != 0 {
		t.Errorf("got %+v, want one failure of kind too_large without a restart: %v", f, s.Types(ada))
	}
}

// TestApprovalIsAsked holds that the tool decides for each call whether it needs approval. A
// call for which the tool returns an error needs approval; for a call that cannot run the tool
// is not asked.
func TestApprovalIsAsked(t *testing.T) { // A40
	var r recorder
	pay := gatedTool{Tool: r.tool("pay", tool.Rerun), approval: tool.Asked, want: func(raw json.RawMessage) (bool, error) {
		var a struct{ N int }
		if err := json.Unmarshal(raw, &a); err != nil {
			return false, &tool.ArgumentError{Err: err}
		}
		switch a.N {
		case 7:
			panic("bug")
		case 8:
			return false, errors.New("no decision")
		}
		return a.N > 50, nil
	}}
	model := scripted.New(scripted.Ask(asks("small", "pay", `{"n":5}`), asks("large", "pay", `{"n":51}`), asks("panic", "pay", `{"n":7}`),
		asks("error", "pay", `{"n":8}`), asks("misfit", "pay", `{"n":"x"}`)), scripted.Say("done"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model, pay))
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.paused")
	var waits []string
	for _, a := range actorstest.Of[messages.ApprovalRequested](all) {
		waits = append(waits, string(a.Call))
	}
	wantLines(t, "wait", waits, "large", "panic", "error")
	wantLines(t, "ran", r.calls(), `{"n":5}`)
	if f := actorstest.Of[messages.ToolFailed](all); len(f) != 1 || f[0].Call != "misfit" || f[0].Kind != "bad_arguments" {
		t.Errorf("got failures %+v, want bad_arguments of call misfit", f)
	}
	node.Must(ada, messages.Interrupt{ID: "i"})
	ends(t, s.Until(ada, "turn.aborted"))
}

// A call that repeats an effect of the turn is flagged, and needs approval if its tool
// requires that for repeats.
func TestRepeatedEffects(t *testing.T) {
	var r recorder
	tools := []tool.Tool{gatedTool{Tool: r.tool("pay", tool.Rerun), repeats: true}, r.tool("mail", tool.Pause), r.tool("look", tool.ReadOnly)}
	same := []scripted.Call{asks("", "pay", `{"n":1,"to":"ada"}`), asks("", "mail", `{"n":1}`), asks("", "look", `{"n":1}`)}
	other := []scripted.Call{asks("", "pay", `{ "to": "ada", "n": 1 }`), asks("", "mail", `{"n": 1}`), asks("", "look", `{"n": 1}`)}
	model := scripted.New(scripted.Ask(same...), scripted.Ask(other...), scripted.Say("done"), scripted.Ask(same...), scripted.Say("done"))
	s := actorstest.New(t, nil)
	node := s.Start(config(model, tools...))
	node.Must(ada, say("u1", "go"))
	all := s.Until(ada, "turn.paused")
	flagged := actorstest.Of[messages.ToolFlagged](all)
	if len(flagged) != 2 || flagged[0].Tool != "pay" || flagged[1].Tool != "mail" || flagged[0].Of == flagged[0].Call {
		t.Fatalf("got flags %+v, want one of pay and one of mail", flagged)
	}
	if n := len(r.calls()); n != 5 {
		t.Errorf("got %d calls that ran, want 5: all but the repeated payment", n)
	}
	node.Must(ada, messages.Deny{ID: "d", Call: flagged[0].Call})
	s.Until(ada, "turn.completed")
	node.Must(ada, say("u2", "again")) // another turn may repeat it
	if all := s.Until(ada, "turn.completed", 2); count(all, "tool.flagged") != 2 {
		t.Errorf("the second turn: got other flags than the two of the first turn: %v", s.Types(ada))
	}
}

// TestApprovalExpires lets an approval expire after an hour of the fake clock. The agent is
// passivated meanwhile; activating it when a timer is due is the task of the owner of its
// partition.
func TestApprovalExpires(t *testing.T) { // A25, A41
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		pay := gatedTool{Tool: r.tool("pay", tool.Pause), approval: tool.Always, expiry: time.Hour}
		model := scripted.New(scripted.Ask(asks("c1", "pay", `{}`), asks("c2", "pay", `{"n":2}`)), scripted.Say("done"))
		s := actorstest.New(t, nil)
		node := s.Start(config(model, pay))
		node.Must(ada, say("u1", "go"))
		s.Until(ada, "turn.paused")
		node.Crash()
		node = s.Start(config(model, pay))
		defer end(node)
		node.Activate(ada)
		node.Must(ada, messages.Approve{ID: "a1", Call: "c1"})
		<-time.After(59 * time.Minute)
		node.Activate(ada)
		if n := count(s.Events(ada), "timer.fired"); n != 0 {
			t.Errorf("got an expired approval before its time")
		}
		<-time.After(time.Minute)
		node.Activate(ada)
		all := s.Until(ada, "approval.denied")
		if d := actorstest.Of[messages.ApprovalDenied](all)[0]; d.By != "timeout" || d.Call != "c2" || d.Reason == "" {
			t.Errorf("got %+v, want a denial of c2 by timeout with a reason", d)
		}
		all = s.Until(ada, "turn.completed")
		ends(t, all)
		if set, over := count(all, "timer.set"), count(all, "timer.fired")+count(all, "timer.cancelled"); set != 2 || over != 2 {
			t.Errorf("got %d timers set and %d ended, want 2 of each", set, over)
		}
		wantLines(t, "ran", r.calls(), `{}`)
	})
}

// A reply subject receives the approval request of a call.
func TestApprovalIsSent(t *testing.T) { // A43
	observed := newObserver()
	cfg := config(scripted.New(scripted.Ask(asks("c1", "pay", `{}`))), gatedTool{Tool: new(recorder).tool("pay", tool.Pause), approval: tool.Always})
	cfg.Observer = observed
	s := actorstest.New(t, nil)
	node := s.Start(cfg)
	in := say("u1", "go")
	in.Reply = "my.inbox"
	node.Must(ada, in)
	s.Until(ada, "turn.paused")
	node.Must(ada, messages.Resume{ID: "flush"}) // answered after everything before it was sent
	var types []string
	for _, r := range observed.received() {
		types = append(types, r.Event.EventType()+" "+r.Input)
	}
	wantLines(t, "sent replies", types, "input.accepted u1", "approval.requested u1")
}
