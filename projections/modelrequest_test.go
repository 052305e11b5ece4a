package projections

import (
	"fmt"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// TestLastRequest has the model call that each event of a log belongs to.
func TestLastRequest(t *testing.T) {
	rewrite := messages.HookDecided{Turn: "t3", Step: 1, Hook: "h", Point: messages.PointBeforeModel, Decision: string(HookRewrite), Reason: "r"}
	events := []struct {
		ev   messages.Event
		want messages.CallID // empty: none
	}{
		{messages.AgentCreated{}, ""},
		{messages.InputAccepted{Input: "u1"}, ""},
		{messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}}, ""},
		{rewrite, ""},
		{messages.TurnPaused{Turn: "t3"}, ""},
		{messages.TurnResumed{Turn: "t3"}, ""},
		{rewrite, ""},
		{messages.BudgetReserved{Turn: "t3", Step: 1}, ""},
		{messages.ModelRequested{Turn: "t3", Step: 1, Call: "m1"}, "m1"},
		{messages.InputAccepted{Input: "u2", Turn: "t3"}, ""}, // it steers the turn
		{messages.InputAccepted{Input: "u3"}, ""},
		{messages.CompactionRequested{Call: "s1"}, "s1"}, // a person asked for it meanwhile
		{messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m1"}, "m1"},
		{messages.BudgetSettled{Turn: "t3", Step: 1, Call: "m1"}, "m1"},
		{messages.ToolRequested{Turn: "t3", Step: 1, Call: "c1"}, "m1"},
		{messages.HistoryCompacted{Call: "s1"}, "s1"},
		{messages.ApprovalRequested{Turn: "t3", Call: "c1"}, "m1"},
		{messages.ToolCompleted{Turn: "t3", Call: "c1"}, "m1"},
		{messages.HookDecided{Turn: "t3", Step: 1, Hook: "h", Point: messages.PointBeforeModel, Decision: string(HookContinue)}, ""},
		{messages.BudgetReserved{Turn: "t3", Step: 2}, ""},
		{messages.ModelRequested{Turn: "t3", Step: 2, Call: "m2"}, "m2"},
		{messages.ModelFailed{Turn: "t3", Step: 2, Call: "m2"}, "m2"},
		{messages.TurnFailed{Turn: "t3"}, "m2"},
		{messages.TurnStarted{Turn: "t4"}, ""},
		{messages.AgentDeleted{}, ""},
	}
	var l LastRequest
	var hooks string
	for i, e := range events {
		l.Apply(messages.EventNumber(i+1), e.ev)
		got := messages.CallID("")
		if c := l.Of(); c != nil && c.Model != nil {
			got, hooks = c.Model.Call, fmt.Sprint(hooks, c.Model.Call, c.Hooks)
		} else if c != nil {
			got = c.Summary.Call
		}
		if got != e.want {
			t.Errorf("event %d, %s: got model call %q, want %q", i+1, e.ev.EventType(), got, e.want)
		}
		if n, kind := l.Event(); int(n) != i+1 || kind != e.ev.EventType() {
			t.Errorf("got event %d, %s, want %d, %s", n, kind, i+1, e.ev.EventType())
		}
		if i == len(events)-2 && (l.Newest() == nil || l.Newest().Model.Call != "m2") {
			t.Errorf("got newest call %+v, want m2", l.Newest())
		}
	}
	if l.Newest() != nil {
		t.Errorf("of a deleted agent: got %+v, want no model call", l.Newest())
	}
	if want := "m1[{h r}]m1[{h r}]m1[{h r}]m1[{h r}]m1[{h r}]m1[{h r}]m2[]m2[]m2[]"; hooks != want {
		t.Errorf("got hooks\n%s, want\n%s", hooks, want)
	}
}
