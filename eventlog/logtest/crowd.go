package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var crowds = map[string]func(*testing.T, Opened){
	"tips are the newest frames, and lead to what is before them": func(t *testing.T, o Opened) {
		agents := Neighbours(5)
		missing, unasked, agents := agents[3], agents[4], agents[:3]
		tails := make(map[messages.AgentID][]eventlog.Tail)
		for n := range 40 {
			for i, a := range append(agents, unasked) {
				if n < []int{1, 3, 40, 2}[i] {
					tails[a] = append(tails[a], appended(t, o.Log, Entry(t, a, behindLast(tails[a]))))
				}
			}
		}
		tips := tipsOf(t, o.Log, append(agents, missing, agents[0])...)
		if len(tips) != len(agents) {
			t.Errorf("%d tips of %d agents", len(tips), len(agents))
		}
		for _, a := range agents {
			all := tails[a]
			tip, newest := tips[a], behindLast(all)
			if tip.Seq != newest.Seq || tip.Last != newest.Last || tip.Size == 0 {
				t.Errorf("%s: the tip is %+v, the tail %+v", a, tip, newest)
			}
			wantTo(t, o.Log, tip, eventlog.Tail{}, all...)
			for n, tail := range all {
				wantTo(t, o.Log, tip, tail, all[n+1:]...)
			}
		}
	},
	"a tip stays where it was": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Tail{}, 3)
		tip := tipsOf(t, o.Log, a)[a]
		more := grow(t, o.Log, a, tails[2], 2)
		wantTo(t, o.Log, tip, eventlog.Tail{}, tails...)
		wantTo(t, o.Log, tip, tails[0], tails[1:]...)
		wantConflict(t, o.Log, Entry(t, a, tails[2]), more[1])
	},
	"there is no tip where a foreign message is the newest": func(t *testing.T, o Opened) {
		needInject(t, o)
		agents := Neighbours(2)
		for _, a := range agents {
			grow(t, o.Log, a, eventlog.Tail{}, 2)
		}
		o.Inject(t, eventlog.Entry{Agent: agents[0], Bytes: []byte("who am I")}, true)
		tips := tipsOf(t, o.Log, agents...)
		if _, there := tips[agents[0]]; there || len(tips) != 1 {
			t.Errorf("tips: %+v", tips)
		}
	},
	"a first frame that somebody has put behind others is damage": func(t *testing.T, o Opened) { // A29
		needInject(t, o)
		a := Agent("ada")
		grow(t, o.Log, a, eventlog.Tail{}, 2)
		o.Inject(t, Entry(t, a, eventlog.Tail{}), false)
		var damaged *eventlog.DamageError
		if got, err := tailsOf(o.Log.ReadTo(context.Background(), tipsOf(t, o.Log, a)[a], eventlog.Tail{})); !errors.As(err, &damaged) {
			t.Errorf("%d frames, %v; want damage", len(got), err)
		}
	},
	"tips of nobody, and of a context that has ended": func(t *testing.T, o Opened) {
		a := Agent("ada")
		grow(t, o.Log, a, eventlog.Tail{}, 1)
		for tip, err := range o.Log.Tips(context.Background(), a.Partition(), nil) {
			t.Errorf("%+v, %v", tip, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		n := 0
		for _, err := range o.Log.Tips(ctx, a.Partition(), []messages.AgentID{a}) {
			if n++; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want context.Canceled", err)
			}
		}
		if n != 1 {
			t.Errorf("%d answers, want one error", n)
		}
	},
}

// tipsOf are the tips of agents of one partition.
func tipsOf(t testing.TB, log eventlog.Crowds, agents ...messages.AgentID) map[messages.AgentID]eventlog.Tip {
	t.Helper()
	tips := make(map[messages.AgentID]eventlog.Tip)
	for tip, err := range log.Tips(context.Background(), agents[0].Partition(), agents) {
		if err != nil {
			t.Fatal(err)
		}
		tips[tip.Agent] = tip
	}
	return tips
}

func wantTo(t testing.TB, log eventlog.Crowds, tip eventlog.Tip, after eventlog.Tail, want ...eventlog.Tail) {
	t.Helper()
	got, err := tailsOf(log.ReadTo(context.Background(), tip, after))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s behind event %d: %d frames, %v; want %d", tip.Agent, after.Last, len(got), err, len(want))
	}
}
