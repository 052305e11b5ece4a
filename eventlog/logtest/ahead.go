package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var readingAhead = map[string]func(*testing.T, Opened){
	"newest frames lead to what is before them": func(t *testing.T, o Opened) {
		agents := Neighbours(5)
		missing, unasked, agents := agents[3], agents[4], agents[:3]
		tails := make(map[messages.AgentID][]eventlog.Position)
		for n := range 40 {
			for i, a := range append(agents, unasked) {
				if n < []int{1, 3, 40, 2}[i] {
					tails[a] = append(tails[a], appended(t, o.Log, Entry(t, a, behindLast(tails[a]))))
				}
			}
		}
		ahead := aheadOf(t, o.Log, append(agents, missing, agents[0])...)
		if len(ahead) != len(agents) {
			t.Errorf("%d newest frames of %d agents", len(ahead), len(agents))
		}
		for _, a := range agents {
			all := tails[a]
			newest, tail := ahead[a], behindLast(all)
			if newest.Seq != tail.Seq || newest.Last != tail.Last || newest.Size == 0 {
				t.Errorf("%s: the newest is %+v, the tail %+v", a, newest, tail)
			}
			wantTo(t, o.Log, newest, eventlog.Position{}, all...)
			for n, tail := range all {
				wantTo(t, o.Log, newest, tail, all[n+1:]...)
			}
		}
	},
	"a frame that was read ahead is where a reader ends": func(t *testing.T, o Opened) {
		a := Agent("ada")
		tails := grow(t, o.Log, a, eventlog.Position{}, 3)
		newest := aheadOf(t, o.Log, a)[a]
		more := grow(t, o.Log, a, tails[2], 2)
		wantTo(t, o.Log, newest, eventlog.Position{}, tails...)
		wantTo(t, o.Log, newest, tails[0], tails[1:]...)
		wantConflict(t, o.Log, Entry(t, a, tails[2]), more[1])
	},
	"none is read ahead where a foreign message is the newest": func(t *testing.T, o Opened) {
		needInject(t, o)
		agents := Neighbours(2)
		for _, a := range agents {
			grow(t, o.Log, a, eventlog.Position{}, 2)
		}
		o.Inject(t, eventlog.Entry{Agent: agents[0], Bytes: []byte("who am I")}, true)
		ahead := aheadOf(t, o.Log, agents...)
		if _, there := ahead[agents[0]]; there || len(ahead) != 1 {
			t.Errorf("read ahead: %+v", ahead)
		}
	},
	"a first frame that somebody has put behind others is damage": func(t *testing.T, o Opened) { // A29
		needInject(t, o)
		a := Agent("ada")
		grow(t, o.Log, a, eventlog.Position{}, 2)
		o.Inject(t, Entry(t, a, eventlog.Position{}), false)
		var damaged *eventlog.DamageError
		newest := aheadOf(t, o.Log, a)[a]
		if got, err := tailsOf(o.Log.Read(context.Background(), a, eventlog.Range{Upto: &newest})); !errors.As(err, &damaged) {
			t.Errorf("%d frames, %v; want damage", len(got), err)
		}
	},
	"none is read ahead of no agents, and of a context that has ended": func(t *testing.T, o Opened) {
		a := Agent("ada")
		grow(t, o.Log, a, eventlog.Position{}, 1)
		for newest, err := range o.Log.ReadAhead(context.Background(), a.Partition(), nil) {
			t.Errorf("%+v, %v", newest, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		n := 0
		for _, err := range o.Log.ReadAhead(ctx, a.Partition(), []messages.AgentID{a}) {
			if n++; !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want context.Canceled", err)
			}
		}
		if n != 1 {
			t.Errorf("%d answers, want one error", n)
		}
	},
}

// aheadOf are the newest frames of agents of one partition, read ahead.
func aheadOf(t testing.TB, log eventlog.Log, agents ...messages.AgentID) map[messages.AgentID]eventlog.Newest {
	t.Helper()
	ahead := make(map[messages.AgentID]eventlog.Newest)
	for newest, err := range log.ReadAhead(context.Background(), agents[0].Partition(), agents) {
		if err != nil {
			t.Fatal(err)
		}
		ahead[newest.Agent] = newest
	}
	return ahead
}

func wantTo(t testing.TB, log eventlog.Log, newest eventlog.Newest, after eventlog.Position, want ...eventlog.Position) {
	t.Helper()
	got, err := tailsOf(log.Read(context.Background(), newest.Agent, eventlog.Range{After: after, Upto: &newest}))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s behind event %d: %d frames, %v; want %d", newest.Agent, after.Last, len(got), err, len(want))
	}
}
