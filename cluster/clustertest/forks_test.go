//go:build unix

package clustertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/messages"
)

// forkOf forks an agent, as often as the endpoints say that trying again helps, and reports the end.
func forkOf(w *clustertest.World, parent, fork string) <-chan error {
	done := make(chan error, 1)
	go func() {
		for {
			ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
			_, err := w.Client().Do(ctx, parent, messages.Fork{ID: "fork-" + fork, Fork: "default/" + fork})
			cancel()
			var refused *messages.Error
			again := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &refused) && refused.Temporary()
			if err == nil || !again || w.Context().Err() != nil {
				done <- err
				return
			}
		}
	}()
	return done
}

// forked holds that a fork was made once, and begins as its parent does.
func forked(t *testing.T, w *clustertest.World, parent, fork string) {
	t.Helper()
	w.Until(fork, "agent.forked")
	var up, own []messages.Event
	w.Eventually(parent+" has the fork on record", func() bool { // it may have others
		up, own = w.Events(parent), w.Events(fork)
		return settled(up, fork) > 0
	})
	begin, is := own[0].(messages.AgentForked)
	if !is || begin.Parent != "default/"+parent || clustertest.Count(own, "agent.forked") != 1 {
		t.Fatalf("%s, of %s, has %v", fork, parent, own)
	}
	if requested(up, fork) != 1 || settled(up, fork) != 1 {
		t.Errorf("%s has requested %s %d times, and %d times on record that it began", parent, fork, requested(up, fork), settled(up, fork))
	}
	if was, is := history(t, w, parent, begin.At), history(t, w, fork, begin.At); len(was) == 0 || !reflect.DeepEqual(was, is) {
		t.Errorf("at event %d the history of %s is %s, that of %s %s", begin.At, parent, was, fork, is)
	}
}

func requested(events []messages.Event, fork string) (n int) {
	for _, ev := range events {
		if r, is := ev.(messages.ForkRequested); is && r.Fork == "default/"+fork {
			n++
		}
	}
	return n
}

// settled is how often a parent has on record that a fork has begun.
func settled(events []messages.Event, fork string) (n int) {
	for _, ev := range events {
		if s, is := ev.(messages.ForkSettled); is && s.Fork == "default/"+fork && s.N > 0 {
			n++
		}
	}
	return n
}

// history is what a model sees of an agent as of an event, as JSON.
func history(t *testing.T, w *clustertest.World, agent string, at messages.EventNumber) (items []string) {
	t.Helper()
	var failed error
	w.Eventually("the history of "+agent+" is there", func() bool {
		items = nil
		for item, err := range w.Client().History(w.Context(), agent, client.At(at)) {
			if failed = err; err != nil {
				return !messages.AsError(err).Temporary()
			}
			line, _ := json.Marshal(item) // always encodes
			items = append(items, string(line))
		}
		return true
	})
	if failed != nil {
		t.Fatal(failed)
	}
	return items
}

// A fork is made in three frames: its parent requests it, it begins, and its parent has that on record. The
// node that writes one of them is killed there, before the frame is stored and when it is and the node does
// not know. The fork begins once, outside of a turn of its parent and inside of one, and calls no tool: what
// its calls return it reads of its parent, which another node owns.
func TestForkKilledAtEveryFrame(t *testing.T) { // A81 A24
	w := clustertest.New(t, clustertest.Nodes(2), clustertest.Limit(8*time.Minute))
	forkKilled(t, w, "none", nil, 0, false, true)
	for _, frame := range []struct {
		name    string
		node    int // 0 owns the parent, 1 the fork
		appends int
	}{{"fork.requested", 0, 1}, {"agent.forked", 1, 1}, {"fork.settled", 0, 2}} {
		for _, stored := range []bool{false, true} {
			for _, inside := range []bool{false, true} {
				forkKilled(t, w, fmt.Sprintf("%s-%t-%t", frame.name[5:], stored, inside), w.Node(frame.node), frame.appends, stored, inside)
			}
		}
	}
	t.Logf("%+v", w.Prove())
}

// forkKilled has a node killed at an append, unless it is nil, while a parent of the first node is forked as
// an agent of the second, and both continue.
func forkKilled(t *testing.T, w *clustertest.World, name string, node *clustertest.Node, appends int, stored, inside bool) {
	t.Helper()
	w.Settled()
	w.Even()
	parent, fork := w.AgentsOf(w.Node(0), clustertest.Worker, 1)[0], w.AgentsOf(w.Node(1), clustertest.Worker, 1)[0]
	w.Ask(parent, name+"-before", clustertest.Pay)
	open := name + "-open"
	gate := w.HoldModel(func(c clustertest.ModelCall) bool { return c.Input == open && c.Step == 1 })
	defer gate.Release()
	if inside {
		w.Send(parent, open, clustertest.Look+" "+clustertest.Pay)
		w.Reached(gate, func() bool { return false })
	}
	var met <-chan struct{}
	if node != nil {
		met = node.StopAt(appends, stored)
	}
	done := forkOf(w, parent, fork)
	if node != nil {
		killAt(t, w, node, met)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	forked(t, w, parent, fork)
	gate.Release()
	w.Settled()
	if inside {
		w.Do(fork, messages.Resume{})
		if got := w.Until(fork, "turn.completed"); got.Output != clustertest.Output(open, clustertest.Look+" "+clustertest.Pay) {
			t.Errorf("%s, dry, says %q", fork, got.Output)
		}
		if node == nil && w.Owner(parent) == w.Owner(fork) {
			t.Errorf("%s and its parent have one owner: its calls have found no results elsewhere", fork)
		}
	}
	dry(t, w, fork, name+"-after")
}

// killAt kills a node when it has come to where it was stopped, and starts it again.
func killAt(t *testing.T, w *clustertest.World, node *clustertest.Node, met <-chan struct{}) {
	t.Helper()
	select {
	case <-met:
	case <-w.Context().Done():
		t.Fatalf("%s did not come to that frame", node.Name())
	}
	node.Kill()
	node.Cut() // loses what was on its way
	node.Heal()
	node.Start()
}

// dry holds that a call of a fork waits for a person if its parent has no such call on record.
func dry(t *testing.T, w *clustertest.World, fork, input string) {
	t.Helper()
	w.Send(fork, input, clustertest.Pay)
	var call messages.CallID
	w.Eventually("a call of the fork waits for a person", func() bool {
		for _, ev := range w.Events(fork) {
			if unknown, is := ev.(messages.ToolUnknown); is {
				call = unknown.Call
			}
		}
		return call != ""
	})
	w.Do(fork, messages.Decide{Call: call, Outcome: messages.OutcomeCompleted, Result: clustertest.Output(input, clustertest.Pay)[len("done "+input+": "):]})
	w.Settled()
	if visits := w.Visits(input); len(visits) > 0 {
		t.Errorf("a dry call went to the shop: %+v", visits)
	}
}

// Agents are forked while partitions move to a node that joins, and from one that leaves.
func TestForkWhilePartitionsMove(t *testing.T) { // A81
	w := clustertest.New(t, clustertest.Nodes(2))
	parents := append(w.AgentsOf(w.Node(0), clustertest.Worker, 4), w.AgentsOf(w.Node(1), clustertest.Worker, 4)...)
	for _, parent := range parents {
		w.Ask(parent, parent[len("worker/"):]+"-before", clustertest.Pay)
	}
	moved, of, forks := make(chan struct{}), make(map[string]string), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-moved:
				forks <- nil
				return
			default:
			}
			parent, fork := parents[n%len(parents)], fmt.Sprintf("worker/moved%d", n)
			of[fork] = parent
			if err := <-forkOf(w, parent, fork); err != nil {
				forks <- err
				return
			}
		}
	}()
	before := w.Moves()
	w.AddNode()
	w.Even()
	w.Node(0).Stop()
	w.Even()
	close(moved)
	if err := <-forks; err != nil {
		t.Fatal(err)
	}
	for fork, parent := range of {
		forked(t, w, parent, fork)
	}
	if w.Moves() == before || len(of) == 0 {
		t.Errorf("%d agents were forked while %d partitions moved", len(of), w.Moves()-before)
	}
	t.Logf("%d forks while %d partitions moved; %+v", len(of), w.Moves()-before, w.Prove())
}
