package turn_test

import (
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

var replier = messages.AgentID{Tenant: "default", Kind: "leaf", Key: "l"}

// The agent that forwards a decision receives its effect, once that is known.
func TestReplyToDecision(t *testing.T) { // A45, A103
	by := messages.Forwarded{For: "default/boss/b"}
	for _, c := range []messages.Command{
		messages.Approve{ID: "a", Call: "c1", Forwarded: by},
		messages.Deny{ID: "b", Call: "c1", Forwarded: by},
		messages.Decide{ID: "c", Call: "c1", Outcome: messages.OutcomeFailed, Forwarded: by},
	} {
		for _, tc := range []struct {
			answer messages.Answer
			want   messages.DecisionEffect
		}{
			{messages.Answer{N: 7}, messages.DecisionEffect{N: 7}},
			{messages.Answer{N: 7, Duplicate: true, Noop: "it was so before"}, messages.DecisionEffect{N: 7, Message: "it was so before"}},
			{messages.Answer{Err: messages.Refuse(messages.Conflict, "too late")}, messages.DecisionEffect{Refused: messages.Conflict, Message: "too late"}},
			{messages.Answer{Err: messages.Refuse(messages.Unavailable, "soon")}, messages.DecisionEffect{}},
			{messages.Answer{Err: messages.Refuse(messages.Busy, "soon")}, messages.DecisionEffect{}},
		} {
			m, ok := turn.Reply(replier, c, tc.answer)
			if tc.want == (messages.DecisionEffect{}) {
				if ok {
					t.Errorf("to %+v it is %+v", tc.answer, m)
				}
				continue
			}
			r, is := m.Command.(messages.DecisionEffect)
			if tc.want.ID, tc.want.Decision = r.ID, messages.IDOf(c); !ok || !is || m.To.Full() != by.For || r != tc.want || r.ID == "" {
				t.Errorf("to %+v it is %+v", tc.answer, m)
			}
		}
	}
	if m, ok := turn.Reply(replier, messages.Approve{ID: "a", Call: "c1"}, messages.Answer{N: 7}); ok {
		t.Errorf("to a decision from outside it is %+v", m)
	}
}

// The parent of a task that is refused receives a report, unless its call is detached.
func TestReplyToTask(t *testing.T) { // A36
	parent := messages.Parent{Caller: messages.Caller{Agent: "default/boss/b", Turn: "t3", Call: "c1"}}
	detached := parent
	detached.Detached = true
	for name, tc := range map[string]struct {
		c    messages.Command
		err  *messages.Error
		want bool
	}{
		"a task that is refused":          {messages.Task{ID: "task:a", Parent: parent}, messages.Refuse(messages.UnknownKind, "no such kind"), true},
		"a cancel that is refused":        {messages.CancelChild{ID: "task:b", Parent: parent}, messages.Refuse(messages.Damaged, "damaged"), true},
		"a task that is accepted":         {messages.Task{ID: "task:a", Parent: parent}, nil, false},
		"a task that is sent again":       {messages.Task{ID: "task:a", Parent: parent}, messages.Refuse(messages.Unavailable, "soon"), false},
		"a detached task that is refused": {messages.Task{ID: "task:a", Parent: detached}, messages.Refuse(messages.UnknownKind, "no such kind"), false},
	} {
		m, ok := turn.Reply(replier, tc.c, messages.Answer{Err: tc.err})
		if ok != tc.want {
			t.Errorf("%s: the reply is %+v", name, m)
		}
		if !ok {
			continue
		}
		r, is := m.Command.(messages.Report)
		if !is || m.To.Full() != parent.Agent || r.ID == "" || r.What != messages.ReportRefused || r.Turn != "t3" || r.Call != "c1" || r.Child != replier.Full() || r.Reason != string(tc.err.Code) {
			t.Errorf("%s: the report to %s is %+v", name, m.To, r)
		}
	}
}

// The parent of a fork learns what became of it, once that is known.
func TestReplyToBeginFork(t *testing.T) { // A81
	c := messages.BeginFork{ID: "fork:1", Parent: "default/boss/b", At: 7}
	for _, tc := range []struct {
		answer messages.Answer
		want   messages.ForkEffect
	}{
		{messages.Answer{N: 8}, messages.ForkEffect{N: 8}},
		{messages.Answer{N: 8, Duplicate: true}, messages.ForkEffect{N: 8}},
		{messages.Answer{Err: messages.Refuse(messages.Conflict, "it exists")}, messages.ForkEffect{Refused: messages.Conflict, Message: "it exists"}},
		{messages.Answer{Err: messages.Refuse(messages.Unavailable, "soon")}, messages.ForkEffect{}},
	} {
		m, ok := turn.Reply(replier, c, tc.answer)
		if tc.want == (messages.ForkEffect{}) {
			if ok {
				t.Errorf("to %+v it is %+v", tc.answer, m)
			}
			continue
		}
		r, is := m.Command.(messages.ForkEffect)
		if tc.want.ID, tc.want.Begin, tc.want.Fork = r.ID, c.ID, replier.Full(); !ok || !is || m.To.Full() != c.Parent || r != tc.want || r.ID == "" {
			t.Errorf("to %+v it is %+v", tc.answer, m)
		}
	}
}
