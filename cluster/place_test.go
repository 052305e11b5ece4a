package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// even waits until the nodes have all partitions between them, evenly.
func (w *world) even(nodes ...*cluster.Node) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d nodes have even shares", len(nodes)), func() bool {
		total, least := 0, messages.Partitions/len(nodes)
		for _, n := range nodes {
			have := n.Partitions()
			if total += have; have < least || have > least+1 {
				return false
			}
		}
		return total == messages.Partitions
	})
}

// leaseWrites is how often a lease has been written.
func (w *world) leaseWrites() uint64 {
	w.t.Helper()
	s, err := w.js.Stream(w.ctx, "KV_reprise_leases")
	w.ok(err)
	return s.CachedInfo().State.LastSeq
}

// sparing holds that since began no more leases were written than it takes for n partitions
// to change hands. One that waits two seconds for its node is taken by another, and given
// again.
func (w *world) sparing(more int, began time.Time, n int) {
	w.t.Helper()
	if slow := time.Since(began) > 2*time.Second; more != 0 && !slow || more < 0 || more%2 != 0 {
		w.t.Errorf("%d more writes than it takes to move %d partitions; logged:\n%s", more, n, w.log)
	}
}

// load asks agents all over the partitions until the function it returns is called,
// and so many were answered; none may fail.
func (w *world) load() (stop func(atLeast int64)) {
	w.t.Helper()
	c := client.New(w.connect(), "reprise")
	ctx, cancel := context.WithCancel(w.ctx)
	var asking sync.WaitGroup
	var answered atomic.Int64
	for i := range 2 {
		asking.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				agent, id := fmt.Sprintf("assistant/k%d", n%32), fmt.Sprintf("%d-%d", i, n)
				if got, err := w.ask(c, agent, input(id, "hello "+id)); err != nil || got.end.Output != "you said hello "+id {
					w.t.Errorf("%s, input %s: %+v, %v", agent, id, got, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	return func(atLeast int64) {
		defer asking.Wait()
		defer cancel()
		w.eventually(fmt.Sprintf("%d asks are answered", atLeast), func() bool { return answered.Load() >= atLeast || w.t.Failed() })
	}
}

// Nodes join and leave while agents are asked: shares become even, no ask fails, and
// leases are written when partitions change hands and only then: once when they are
// given and once when they are taken.
func TestJoinAndLeave(t *testing.T) { // A91
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	first := w.node()
	stop := w.load()
	defer func() { stop(0) }()
	written := w.leaseWrites()
	if written != messages.Partitions {
		t.Errorf("%d writes for the first node's partitions", written)
	}
	began := time.Now()
	moved := func(n int) {
		t.Helper()
		now := w.leaseWrites()
		w.sparing(int(now-written)-2*n, began, n)
		written, began = now, time.Now()
	}
	second := w.node()
	w.even(first, second)
	moved(32)
	third := w.node()
	w.even(first, second, third)
	moved(21)
	w.ok(second.Close())
	w.even(first, third)
	moved(21)
	stop(32)
	if log := w.log.String(); strings.Contains(log, "stepped down") {
		t.Errorf("somebody lost a partition:\n%s", log)
	}
	owners := map[string]int{}
	for p := range messages.Partition(messages.Partitions) {
		owners[w.owner(p)]++
	}
	if want := map[string]int{first.ID(): 32, third.ID(): 32}; len(owners) != 2 || owners[first.ID()] != want[first.ID()] {
		t.Errorf("the leases say %v", owners)
	}
}

// owner is the member that a lease names.
func (w *world) owner(p messages.Partition) string {
	w.t.Helper()
	kv, err := w.js.KeyValue(w.ctx, "reprise_leases")
	w.ok(err)
	e, err := kv.Get(w.ctx, "p."+p.String())
	w.ok(err)
	_, rest, _ := strings.Cut(string(e.Value()), `"member":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// agentOf is an agent of kind assistant that a node owns now, and none of those given.
func (w *world) agentOf(n *cluster.Node, not ...string) string {
	w.t.Helper()
	for i := 0; ; i++ {
		agent := fmt.Sprintf("assistant/a%d", i)
		a, err := messages.ParseAgentID(agent)
		w.ok(err)
		if w.owner(a.Partition()) == n.ID() && !slices.Contains(not, agent) {
			return agent
		}
	}
}

// A node that is frozen for longer than its membership lasts stops acting, loses its
// partitions, and when it is thawed what it then does is refused: it steps down, says
// so, and takes its share again.
func TestFrozen(t *testing.T) { // A92 A26
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	gate, wi := scripted.NewGate(), &wire{}
	first := w.node(agents(scripted.Func(func(messagesRequest) scripted.Step { return scripted.Held(gate, scripted.Say("too late")) }), nil), over(wi))
	called := make(chan struct{}, 10)
	second := w.node(agents(scripted.Func(func(messagesRequest) scripted.Step {
		called <- struct{}{}
		return scripted.Say("in time")
	}), nil))
	w.even(first, second)
	agent := w.agentOf(first)
	_, err := second.Client().Send(w.ctx, agent, input("1", "go"))
	w.ok(err)
	<-gate.Reached()
	wi.freeze()
	t.Cleanup(wi.thaw)
	w.owns(second)
	<-called
	w.eventually("the frozen node has noticed", func() bool { return strings.Contains(w.log.String(), "owns nothing until it is") })
	if strings.Contains(w.log.String(), "stepped down") {
		t.Error("a node has stepped down already")
	}
	gate.Release() // what it writes now comes late
	wi.thaw()
	w.until(second.Client(), agent, ofType("turn.completed"))
	w.even(first, second)
	log := w.log.String()
	if !strings.Contains(log, `level=WARN msg="this node has stepped down`) || strings.Count(log, "stepped down") != 1 || !strings.Contains(log, "member="+first.ID()) {
		t.Errorf("it does not say so once:\n%s", log)
	}
	events := w.events(second.Client(), agent)
	if count(events, "agent.activated") < 1 || count(events, "turn.completed") != 1 {
		t.Errorf("%+v", events)
	}
	for _, e := range events {
		if strings.Contains(string(e.Data), "too late") {
			t.Errorf("a late write: %s", e.Data)
		}
	}
}

// One of three nodes is killed while agents are asked: the others share what it had,
// and no ask fails.
func TestKilledOfThree(t *testing.T) {
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	wi := &wire{}
	first, second, third := w.node(), w.node(over(wi)), w.node()
	w.even(first, second, third)
	stop := w.load()
	written, began := w.leaseWrites(), time.Now()
	had := second.Partitions()
	wi.cut()
	w.eventually("the others have it all, evenly", func() bool { return first.Partitions() == 32 && third.Partitions() == 32 })
	w.sparing(int(w.leaseWrites()-written)-had, began, had)
	stop(1)
}

// A node leaves while a tool runs that must not be cut off: it hands over everything else at
// once, and that partition when the tool has ended. No person has to say what became of the call.
func TestLeaveWaitsForTool(t *testing.T) { // A91 A22
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	var runs atomic.Int32
	running, end := make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() { close(end) })
	defer finish() // or a node does not end
	once := tool.New("once", "", tool.Pause, func(context.Context, struct{}) (string, error) {
		if runs.Add(1) == 1 {
			close(running)
		}
		<-end
		return "ran", nil
	})
	with := func(d *actors.Definition) { d.Tools = []tool.Tool{once} }
	first := w.node(agents(scripted.New(scripted.Ask(scripted.Call{Name: "once", Arguments: "{}"}), scripted.Say("done")), with),
		func(c *cluster.Config) { c.DrainLimit = 3 * time.Minute }) // as long as the test may take
	second := w.node(agents(scripted.New(scripted.Say("done")), with))
	w.even(first, second)
	agent := w.agentOf(first)
	_, err := second.Client().Send(w.ctx, agent, input("1", "go"))
	w.ok(err)
	select {
	case <-running:
	case <-w.ctx.Done():
		t.Fatal("the tool was not called")
	}
	closed := make(chan error)
	go func() { closed <- first.Close() }()
	w.eventually("the other has all but one", func() bool { return second.Partitions() == messages.Partitions-1 })
	select {
	case <-closed:
		t.Error("it did not wait for the tool")
	default:
	}
	finish()
	w.ok(<-closed)
	w.owns(second)
	w.until(second.Client(), agent, ofType("turn.completed"))
	if events := w.events(second.Client(), agent); count(events, "tool.unknown") != 0 || count(events, "tool.completed") != 1 || runs.Load() != 1 {
		t.Errorf("%d runs; %+v", runs.Load(), events)
	}
}

// All nodes are ordered to drain at the same time: no agent is left without an owner.
func TestAllDrain(t *testing.T) { // A91
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	first, second := w.node(), w.node()
	w.even(first, second)
	var draining sync.WaitGroup
	for _, n := range []*cluster.Node{first, second} {
		draining.Go(func() {
			if err := n.Drain(w.ctx, true); err != nil && codeOf(err) != messages.Conflict {
				t.Errorf("%v", err)
			}
		})
	}
	draining.Wait()
	for i := range 32 {
		id := fmt.Sprint(i)
		if got := w.say(first.Client(), "assistant/k"+id, id, "hello"); got.end.Output != "you said hello" {
			t.Errorf("%+v", got)
		}
	}
	w.eventually("every partition has an owner", func() bool { return first.Partitions()+second.Partitions() == messages.Partitions })
	if first.Partitions() == 0 || second.Partitions() == 0 { // one has learned of the other first
		return
	}
	if err := first.Drain(w.ctx, true); codeOf(err) != messages.Conflict {
		t.Errorf("it may drain again: %v", err)
	}
}

// All nodes are stopped at the same time, which none of them waits long for: no node is
// there to take anything.
func TestAllClose(t *testing.T) { // A91
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	never := func(c *cluster.Config) { c.DrainLimit = 90 * time.Second }
	first, second, third := w.node(never), w.node(never), w.node(never)
	w.even(first, second, third)
	var closing sync.WaitGroup
	for _, n := range []*cluster.Node{first, second, third} {
		closing.Go(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closed := make(chan struct{})
	go func() { closing.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-w.ctx.Done():
		t.Fatalf("they wait for each other; logged:\n%s", w.log)
	}
	if log := w.log.String(); strings.Contains(log, "before all its partitions are handed over") {
		t.Errorf("somebody is sorry:\n%s", log)
	}
}
