//go:build unix

package clustertest_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// keys are those that each agent has come to the shop with. It comes again with the same
// key where its node stood still for so long that another took over.
func keys(visits []clustertest.Visit) map[string][]string {
	of := make(map[string][]string)
	for _, v := range visits {
		if !slices.Contains(of[v.Agent], v.Key) {
			of[v.Agent] = append(of[v.Agent], v.Key)
		}
	}
	return of
}

// atGate sends agents of a node the same plan, one after the other, until one is held at the gate
// that is made for its input: a node that stalls may lose an agent before.
func atGate(w *clustertest.World, n *clustertest.Node, plan string, hold func(input string) *scripted.Gate) (agent, input string, gate *scripted.Gate) {
	for try := 0; ; try++ {
		agent, input = w.AgentsOf(n, clustertest.Worker, 1)[0], fmt.Sprintf("%s-held%d", plan, try)
		gate = hold(input)
		w.Send(agent, input, plan)
		if w.Reached(gate, func() bool { return w.Owner(agent) != n }) {
			return agent, input, gate
		}
		gate.Release()
	}
}

// One id has one effect, whichever endpoint it comes through, however often, and also
// after its owner was killed and after all nodes were started again. To another
// agent it is another input.
func TestSameID(t *testing.T) { // A8
	w := clustertest.New(t, clustertest.Nodes(2))
	const agent = "worker/same"
	first := w.Ask(agent, "twice", clustertest.Pay)
	again := func(when string) {
		t.Helper()
		for range 8 { // through either endpoint
			if got := w.Ask(agent, "twice", clustertest.Pay); got.Err != nil || got.Output != first.Output || got.N != first.N {
				t.Errorf("%s: %+v, at first %+v", when, got, first)
			}
			if _, err := w.Client().Send(w.Context(), agent, clustertest.Input("twice", clustertest.Pay)); err != nil {
				t.Error(err)
			}
		}
	}
	again("at once")
	w.Owner(agent).Kill()
	again("after a kill")
	for i := range 2 {
		if w.Node(i).Alive() {
			w.Node(i).Stop()
		}
		w.Node(i).Start()
	}
	again("after a restart of all")
	if other := w.Ask("worker/other", "twice", clustertest.Pay); other.Err != nil || other.Output != first.Output {
		t.Errorf("another agent: %+v", other)
	}
	w.Eventually("what was published is applied", func() bool {
		left, _, err := w.Client().Backlog(w.Context())
		return err == nil && left == 0
	})
	paid := keys(w.Visits("twice"))
	if len(paid["default/worker/same"]) != 1 || len(paid["default/worker/other"]) != 1 || len(paid) != 2 {
		t.Errorf("paid %v", paid)
	}
	if events := w.Events(agent); clustertest.Count(events, "input.accepted") != 1 || clustertest.Count(events, "turn.started") != 1 {
		t.Errorf("%v", events)
	}
}

// An owner is frozen in the middle of a model call, and of a tool's, for longer than
// its membership lasts; others finish the turns. When it continues, what it still
// holds in its hands is refused, and it says that it has stepped down.
func TestFrozenOwner(t *testing.T) { // A92 A26
	w := clustertest.New(t, clustertest.Nodes(3))
	frozen := w.Busiest()
	thinks, _, model := atGate(w, frozen, clustertest.Look, func(input string) *scripted.Gate {
		return w.HoldModel(func(c clustertest.ModelCall) bool { return c.Node == frozen.Process() && c.Input == input })
	})
	buys, bought, shop := atGate(w, frozen, clustertest.Pay, func(input string) *scripted.Gate {
		return w.HoldShop(func(v clustertest.Visit) bool { return v.Node == frozen.Process() && v.Input == input })
	})
	load := w.Load()
	load.Acked(50)
	frozen.Freeze()
	w.Deposed(frozen)
	for _, agent := range []string{thinks, buys} {
		if got := w.Until(agent, "turn.completed"); got.Err != nil {
			t.Errorf("%s: %+v", agent, got)
		}
	}
	before := map[string][]messages.Event{thinks: w.Events(thinks), buys: w.Events(buys)}
	model.Release() // both answers wait for it when it wakes up
	shop.Release()
	w.Eventually("the shop has had both visits", func() bool { return len(w.Visits(bought)) >= 2 })
	frozen.Thaw()
	frozen.Logged("stepped down")
	load.Acked(100)
	load.Stop()
	got := w.Prove()
	t.Logf("%+v; %s", got, load)
	for agent, was := range before {
		now := w.Events(agent)
		if !reflect.DeepEqual(now[:len(was)], was) || clustertest.Count(now, "turn.completed") != 1 {
			t.Errorf("%s had the events %v when its turn was over, and has %v", agent, was, now)
		}
		for _, ev := range now[len(was):] {
			if ev.EventType() != "agent.activated" { // it moves on when the node is back
				t.Errorf("%s has %s %v though its turn was over", agent, ev.EventType(), ev)
			}
		}
	}
	if visits := w.Visits(bought); len(visits) < 2 || len(keys(visits)["default/"+buys]) != 1 || len(keys(visits)) != 1 {
		t.Errorf("paid %+v: want two visits under one key", visits)
	}
}

// A node is cut off from NATS under load: it serves nothing and loses nothing; after
// healing all continue.
func TestCutOff(t *testing.T) { // A93 A26
	for _, how := range []struct {
		name string
		cut  func(*clustertest.Node)
	}{{"broken", (*clustertest.Node).Cut}, {"silent", (*clustertest.Node).Stall}} {
		t.Run(how.name, func(t *testing.T) {
			w := clustertest.New(t, clustertest.Nodes(3))
			load := w.Load()
			load.Acked(100)
			off := w.Busiest()
			agent, input, gate := atGate(w, off, clustertest.Pay, func(input string) *scripted.Gate {
				return w.HoldModel(func(c clustertest.ModelCall) bool { return c.Node == off.Process() && c.Input == input })
			})
			how.cut(off)
			w.Deposed(off)
			if got := w.Until(agent, "turn.completed"); got.Err != nil {
				t.Errorf("%+v", got)
			}
			gate.Release() // it has its answer now, and cannot send it
			load.Acked(100)
			off.Heal()
			off.Logged("stepped down")
			load.Acked(100)
			load.Stop()
			got := w.Prove()
			t.Logf("%+v; %s", got, load)
			visits := w.Visits(input)
			if paid := keys(visits); len(paid) != 1 || len(paid["default/"+agent]) != 1 {
				t.Errorf("%+v: want one key", visits)
			}
			if slices.ContainsFunc(visits, func(v clustertest.Visit) bool { return v.Node == off.Process() }) {
				t.Errorf("%+v: want them by another node", visits)
			}
			if !off.Alive() {
				t.Errorf("%s has ended", off.Name())
			}
		})
	}
}

// overtaken mutes a node and has it begin a turn of agents that were idle, so many at most, for
// inputs that want a look. It returns those whose first frame was on the way when the node was
// deposed, with their inputs: on a slow machine it may begin some in time, or none, and then
// others are tried.
func overtaken(w *clustertest.World, old *clustertest.Node, most int, name string) (agents []string, inputs map[string]string) {
	for try := 0; ; try++ {
		agents, inputs = w.AgentsOf(old, clustertest.Worker, most), make(map[string]string)
		for i, agent := range agents { // in memory, with nothing to report
			w.Do(agent, messages.SetState{Patch: json.RawMessage(`{"is":"idle"}`)})
			inputs[agent] = fmt.Sprintf("%s%d-%d", name, try, i)
		}
		old.Mute()
		for _, agent := range agents {
			w.PromptOnce(agent, inputs[agent], clustertest.Look)
		}
		agents = old.Appended(agents)
		w.Deposed(old)
		if len(agents) > 0 {
			return agents, inputs
		}
		old.Heal()
		w.Even()
	}
}

// A frame of an owner is on the way to NATS for longer than it is the owner, and
// begins the turn of an agent that was idle. Its successor has no reason to look at
// that agent before; it notices, fences it and finishes the turn.
func TestLateFirstFrame(t *testing.T) { // A107 A26
	w := clustertest.New(t, clustertest.Nodes(2))
	late, of := 0, 0
	for round := 0; late == 0; round++ { // none is late if the successor was given every input first
		more, agents := lateFrames(t, w, fmt.Sprintf("late%dx", round))
		late, of = late+more, of+agents
	}
	got := w.Prove()
	t.Logf("%d of %d frames were late; %+v", late, of, got)
}

// lateFrames has an owner begin turns and be deposed before NATS receives them, and returns of
// how many of the agents its successor found the turn begun.
func lateFrames(t *testing.T, w *clustertest.World, name string) (late, of int) {
	t.Helper()
	w.Even()
	old := w.Busiest()
	gate := w.HoldModel(func(c clustertest.ModelCall) bool {
		return c.Node == old.Process() && strings.HasPrefix(c.Input, name)
	})
	defer gate.Release()
	agents, inputs := overtaken(w, old, 8, name)
	old.Heal()
	for _, agent := range agents {
		w.Until(agent, "turn.started")
	}
	gate.Release() // it may be the owner again by now
	for _, agent := range agents {
		done := w.Until(agent, "turn.completed")
		events := w.Events(agent)
		if clustertest.Count(events, "input.accepted") != 1 || done.Output != clustertest.Output(inputs[agent], clustertest.Look) {
			t.Errorf("%s: %+v: %v", agent, done, events)
		}
		if w.Epoch(agent, "input.accepted") < w.Epoch(agent, "agent.activated") {
			late++
		}
	}
	return late, len(agents)
}

// Two nodes write to one agent: the frame of the older owner is on the way when its
// successor writes. One of the two is taken, and what the older one does afterwards
// is not in the log.
func TestTwoOwners(t *testing.T) { // A26
	w := clustertest.New(t, clustertest.Nodes(2))
	old := w.Busiest()
	gate := w.HoldModel(func(c clustertest.ModelCall) bool { return c.Node == old.Process() })
	defer gate.Release()
	agents, _ := overtaken(w, old, 4, "older")
	for i, agent := range agents {
		w.Send(agent, fmt.Sprintf("newer%d", i), clustertest.Look)
		w.Until(agent, "turn.completed")
	}
	old.Heal()
	w.Eventually("every frame of the older owner is refused", func() bool { return old.Refused() >= len(agents) })
	old.Logged("stepped down")
	gate.Release() // it may be the owner again by now
	got := w.Prove()
	for _, agent := range agents {
		if w.Epoch(agent, "turn.started") <= w.Epoch(agent, "state.patched") {
			t.Errorf("%s: %v", agent, w.Events(agent))
		}
	}
	t.Logf("%d frames were refused; %+v", old.Refused(), got)
}
