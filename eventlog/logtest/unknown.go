package logtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// unknown covers appends whose outcome is not known at first.
var unknown = map[string]func(*testing.T, Opened){
	"commit resolves each fault to one frame": func(t *testing.T, o Opened) {
		for i, plan := range [][]Fault{{LoseRequest}, {LoseAck}, {Delay}, {Double}, {LoseAck, LoseAck, Delay}, {Delay, Double}, {Delay, LoseRequest, LoseAck}} {
			a := Agent(fmt.Sprint("fault", i))
			first := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
			e := Entry(t, a, first)
			tail, err := eventlog.Commit(context.Background(), NewFaulty(o.Store, plan...), e)
			if err != nil {
				t.Fatalf("plan %v: %v", plan, err)
			}
			wantTail(t, o.Log, a, tail)
			wantFrames(t, o.Log, a, first.Frame, e.Frame.ID)
		}
	},
	"a writer under many faults leaves a whole stream": func(t *testing.T, o Opened) {
		a, tail := Agent("ada"), eventlog.Position{}
		log := NewFaulty(o.Store, Plan(7, 30)...)
		var want []messages.FrameID
		for range 20 {
			e := Entry(t, a, tail)
			var err error
			if tail, err = eventlog.Commit(context.Background(), log, e); err != nil {
				t.Fatal(err)
			}
			want = append(want, e.Frame.ID)
		}
		wantFrames(t, o.Log, a, want...)
	},
	// A26
	"of two writers under faults exactly one wins": func(t *testing.T, o Opened) {
		a, tail := Agent("ada"), eventlog.Position{}
		log := NewFaulty(o.Store, Plan(11, 40)...)
		var want []messages.FrameID
		for range 15 {
			tail = race(t, log, Entry(t, a, tail), Entry(t, a, tail))
			want = append(want, tail.Frame)
		}
		wantFrames(t, o.Log, a, want...)
	},
	"a request that arrives late cannot displace another owner": func(t *testing.T, o Opened) {
		a := Agent("ada")
		old := NewFaulty(o.Store, Delay)
		late := Entry(t, a, eventlog.Position{})
		if _, err := old.Append(context.Background(), late); err == nil {
			t.Fatal("the fault did not happen")
		}
		tail := grow(t, o.Log, a, eventlog.Position{}, 1)[0]
		wantConflict(t, old, late, tail)
		wantFrames(t, o.Log, a, tail.Frame)
	},
}
