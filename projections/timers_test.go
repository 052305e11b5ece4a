package projections

import (
	"fmt"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

func TestTimersView(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }
	input := func(id, text string) *messages.Input {
		return &messages.Input{ID: id, Content: messages.TextContent(text)}
	}
	a := messages.AgentID{Tenant: "default", Kind: "k", Key: "a"}
	var v Work
	for i, tc := range []struct {
		ev   messages.Event
		want string
	}{
		{messages.TimerSet{Timer: "late", For: "input", At: at(9), Input: input("u1", "x")}, "late@9 x;"},
		{messages.TimerSet{Timer: "daily", For: "input", At: at(5), Cron: "0 5 * * *", Input: input("u2", "y")}, "daily@5 y; late@9 x;"},
		{messages.TimerSet{Turn: "t1", Timer: "late", For: "retry", At: at(1)}, "daily@5 y; late@9 x;"},
		{messages.TimerFired{Turn: "t1", Timer: "late"}, "daily@5 y; late@9 x;"},
		{messages.TimerFired{Timer: "daily"}, "daily@5 y; late@9 x;"},
		{messages.TimerSet{Timer: "daily", For: "input", At: at(23), Cron: "0 5 * * *"}, "late@9 x; daily@23 y;"},
		{messages.TimerCancelled{Turn: "t1", Timer: "late"}, "late@9 x; daily@23 y;"},
		{messages.TimerFired{Timer: "late"}, "daily@23 y;"},
		{messages.TimerCancelled{Timer: "nobody"}, "daily@23 y;"},
		{messages.TimerCancelled{Timer: "daily"}, ""},
		{messages.TimerSet{Timer: "late", For: "input", At: at(9), Input: input("u3", "z")}, "late@9 z;"},
		{messages.AgentCleared{}, ""},
	} {
		v.Apply(messages.EventNumber(i+1), tc.ev)
		got := ""
		for _, line := range v.Timers.Lines(a) {
			got += fmt.Sprintf("%s@%d %s; ", line.Timer, line.Next.Hour(), line.Text)
			if line.Agent != a || line.N == 0 {
				t.Errorf("line: got %+v, want one of %s with an event number", line, a)
			}
		}
		if len(got) > 0 {
			got = got[:len(got)-1]
		}
		if got != tc.want {
			t.Errorf("after %+v: got %s, want %s", tc.ev, got, tc.want)
		}
	}
}
