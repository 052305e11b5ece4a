//go:build unix

package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/clustertest"
	"github.com/reprise-dev/reprise/messages"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// ofReplicas leaves a test to make test-replicas.
func ofReplicas(t *testing.T) {
	t.Helper()
	if os.Getenv("REPRISE_REPLICAS") == "" {
		t.Skip("three servers under load take most of a minute: make test-replicas")
	}
}

// undisturbed holds that a round has no problems. It is gone through again, three times at
// most, if a process stood still meanwhile: a node that does may be given up, and rightly so.
func undisturbed(t *testing.T, w *clustertest.World, round func(try int) (problems []error)) {
	t.Helper()
	for try := 1; ; try++ {
		before := w.StoodStill()
		problems := round(try)
		if len(problems) > 0 && try < 3 && w.StoodStill() > before {
			t.Logf("once more, for a process stood still: %v", problems)
			w.Even()
			continue
		}
		for _, err := range problems {
			t.Error(err)
		}
		return
	}
}

// What is promised: that a node's agents continue elsewhere, and an election of the NATS
// servers at its longest, as docs/decisions/0014-nats.md has it.
const (
	failover = time.Second
	election = 9 * time.Second
)

// within holds that what was measured is at most ten times what is promised, by the times
// in the log. A run in which a process stood still since before is left out: a node that
// does may be given up, and a server's election may begin again.
func within(t *testing.T, w *clustertest.World, before int, what string, took, promised time.Duration) {
	t.Helper()
	switch limit := 10 * promised; {
	case w.StoodStill() > before:
		t.Logf("%s: %v, not judged: a process stood still", what, took)
	case took > limit:
		t.Errorf("%s: %v, more than %v", what, took, limit)
	default:
		t.Logf("%s: %v", what, took)
	}
}

// still holds that no partition changes hands in a round.
func still(w *clustertest.World, round func()) (problems []error) {
	before := w.Moves()
	round()
	if moved := w.Moves() - before; moved != 0 {
		problems = append(problems, fmt.Errorf("%d partitions changed hands", moved))
	}
	return problems
}

// Many publishers send to one agent through all nodes, while it changes hands.
func TestOneAgentOfMany(t *testing.T) { // A7
	w := clustertest.New(t, clustertest.Nodes(3))
	const inputs = 1000
	load := w.Load(clustertest.Publishers(12), clustertest.To("worker/one"), clustertest.Inputs(inputs), clustertest.Plans("", "", "", clustertest.Pay))
	load.Acked(inputs / 3)
	w.Until("worker/one", "turn.completed") // its owner has something to leave
	w.Owner("worker/one").Kill()
	load.Done()
	if got := w.Ask("worker/one", "after", ""); got.Err != nil { // or no node need write after the kill
		t.Error(got.Err)
	}
	if got := w.Prove(); got.Acked != inputs+1 || got.Agents != 1 || got.Takeovers == 0 {
		t.Errorf("%+v", got)
	}
}

// A node is killed under load; its agents answer elsewhere, with tools running.
func TestNodeKilled(t *testing.T) { // A90 A6 A7
	w := clustertest.New(t, clustertest.Nodes(3))
	load := w.Load()
	load.Acked(100)
	stood := w.StoodStill()
	victim := w.Busiest()
	agents := w.AgentsOf(victim, clustertest.Worker, 8)
	gate := w.HoldModel(func(c clustertest.ModelCall) bool {
		return c.Node == victim.Process() && strings.HasPrefix(c.Input, "held")
	})
	defer gate.Release()
	for i, agent := range agents { // nothing more is sent to these
		w.Send(agent, fmt.Sprintf("held%d", i), clustertest.Pay)
		w.Until(agent, "model.requested")
	}
	member, killed := victim.ID(), time.Now()
	victim.Kill()
	if got := w.Ask(agents[0], "after", clustertest.Pay); got.Err != nil {
		t.Errorf("%+v", got)
	}
	w.Deposed(victim)
	for i, agent := range agents {
		if got := w.Until(agent, "turn.completed"); got.Output != clustertest.Output(fmt.Sprintf("held%d", i), clustertest.Pay) {
			t.Errorf("%+v", got)
		}
	}
	load.Acked(100)
	victim.Start()
	w.Even()
	load.Acked(50)
	load.Stop()
	got := w.Prove()
	t.Logf("%+v; %s", got, load)
	if got.Moves == 0 || got.Takeovers == 0 {
		t.Errorf("%+v: a run in which nothing changed hands", got)
	}
	longest, counted := w.Failover(member, killed)
	within(t, w, stood, fmt.Sprintf("%d agents in mid-turn went on elsewhere", counted), longest, failover)
	if counted < len(agents) {
		t.Errorf("%d agents were in mid-turn, want %d and those of the load", counted, len(agents))
	}
}

// One node joins and one leaves in order, under load; no caller notices.
func TestJoinAndLeave(t *testing.T) { // A91 A6 A7
	w := clustertest.New(t, clustertest.Nodes(2))
	undisturbed(t, w, func(int) []error {
		load := w.Load(clustertest.Within(time.Minute)) // that a machine is slow is no failure
		load.Acked(100)
		w.AddNode()
		w.Even()
		load.Acked(100)
		leaves := w.Busiest()
		leaves.Stop()
		load.Acked(100)
		w.Even()
		leaves.Start()
		w.Even()
		load.Acked(50)
		load.Stop()
		t.Log(load)
		return load.Failed()
	})
	got := w.Prove()
	t.Logf("%+v", got)
	if got.Moves == 0 {
		t.Errorf("%+v: a run in which nothing changed hands", got)
	}
}

// plain reports whether an error says to a caller what is the matter: no server or node
// answers, or its own time is over.
func plain(err error) bool {
	var refused *messages.Error
	return errors.As(err, &refused) && refused.Temporary() ||
		slices.ContainsFunc([]error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected}, func(is error) bool { return errors.Is(err, is) })
}

// NATS goes away under load and comes back; every node continues without a restart.
func TestServerKilled(t *testing.T) { // A30
	w := clustertest.New(t, clustertest.Nodes(2))
	stood := w.StoodStill()
	load := w.Load()
	load.Acked(100)
	w.Server(0).Kill()
	w.Pass(30 * time.Second)
	w.Server(0).Start()
	load.Acked(100)
	load.Stop()
	t.Logf("%+v; %s", w.Prove(), load)
	if took := load.Slowest(); took > 12*time.Second && w.StoodStill() == stood { // callers wait for ten
		t.Errorf("an attempt failed after %v", took)
	}
	for _, err := range load.Failed() {
		if !plain(err) {
			t.Errorf("a caller is told %v (%T)", err, errors.Unwrap(err))
		}
	}
	for i := range 2 {
		if !w.Node(i).Alive() {
			t.Errorf("%s has ended", w.Node(i).Name())
		}
	}
}

// One of three servers is killed under load, which leads the inputs: the other two
// continue without it.
func TestOneServerOfThreeKilled(t *testing.T) { // A94
	w := clustertest.New(t, clustertest.Nodes(2), clustertest.Servers(3))
	load := w.Load(clustertest.Publishers(4))
	load.Acked(30)
	stood, leads := w.StoodStill(), w.Leads("REPRISE_IN")
	leads.Kill()
	load.Acked(60)
	leads.Start()
	load.Acked(30)
	load.Stop()
	got := w.Prove()
	t.Logf("%+v; %s", got, load)
	within(t, w, stood, "an input was accepted", got.Wait, election)
	within(t, w, stood, "an input was acknowledged after another", got.Pause, election)
}

// Servers die that lead what nodes live by: who the members are, and what is sent to
// agents. No node has died, so none is given another's partitions, and inputs
// continue as soon as another server leads.
func TestElections(t *testing.T) { // A94
	ofReplicas(t)
	w := clustertest.New(t, clustertest.Nodes(3), clustertest.Servers(3))
	streams := []string{"KV_reprise_members", "KV_reprise_leases", "REPRISE_IN", "REPRISE_LOG_0"}
	stood := w.StoodStill()
	undisturbed(t, w, func(int) []error {
		return still(w, func() {
			load := w.Load(clustertest.Publishers(4))
			load.Acked(30)
			for _, stream := range streams {
				s := w.Leads(stream)
				s.Kill()
				load.Acked(60)
				s.Start()
				load.Acked(60)
			}
			load.Stop()
			w.Settled()
			t.Log(load)
		})
	})
	got := w.Prove()
	t.Logf("%+v", got)
	within(t, w, stood, "an input was accepted", got.Wait, election)
}

// placed starts three nodes, and starts one of them again until the members are watched through a
// server that does not lead them, by the node that follows the one beside that server in the
// order of ids: not by the one that pings that. It returns the server's number.
func placed(t *testing.T, w *clustertest.World) int {
	t.Helper()
	js, err := jetstream.New(w.Conn())
	if err != nil {
		t.Fatal(err)
	}
	watches := func() map[string]string { // and the servers that they are on
		on := make(map[string]string)
		stream, err := js.Stream(w.Context(), "KV_reprise_members")
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return on
		}
		if err != nil {
			t.Fatal(err)
		}
		list := stream.ListConsumers(w.Context())
		for info := range list.Info() {
			on[info.Name] = info.Cluster.Leader
		}
		if list.Err() != nil {
			t.Fatal(list.Err())
		}
		return on
	}
	var through [3]string
	start := func(i int, begin func()) {
		before := watches()
		begin()
		for name, server := range watches() {
			if _, old := before[name]; !old {
				through[i] = server
			}
		}
	}
	for i := range through {
		start(i, func() { w.AddNode() })
	}
	for try := 0; ; try++ {
		leads := w.Leads("KV_reprise_members")
		for i := range through {
			name := fmt.Sprintf("nats-%d", i)
			if w.Server(i) != leads && through[follower(w, i)] == name {
				w.Even()
				return i
			}
		}
		n := w.Node(try % 3)
		n.Stop()
		start(try%3, n.Start)
	}
}

// follower is the number of the node whose id follows that of the i-th, of three.
func follower(w *clustertest.World, i int) int {
	ids := []string{w.Node(0).ID(), w.Node(1).ID(), w.Node(2).ID()}
	sorted := slices.Sorted(slices.Values(ids))
	return slices.Index(ids, sorted[(slices.Index(sorted, ids[i])+1)%3])
}

// A machine with a server and a node dies. A node that watches the members through that server,
// and is connected to another, notices all the same: the others share the dead node's partitions,
// and then nothing moves any more.
func TestServerAndNodeKilled(t *testing.T) { // A90 A94
	ofReplicas(t)
	w := clustertest.New(t, clustertest.Nodes(0), clustertest.Servers(3))
	i := placed(t, w)
	stood, killed := w.StoodStill(), time.Now()
	w.Server(i).Kill()
	w.Node(i).Kill()
	w.Agree()
	w.Even()
	within(t, w, stood, "the others shared the node's partitions", w.Moved().Sub(killed), failover+election)
	undisturbed(t, w, func(try int) []error {
		return still(w, func() {
			for p, agent := range w.OfEach(clustertest.Worker) {
				if got := w.Ask(agent, fmt.Sprintf("killed%d-%d", try, p), clustertest.Look); got.Err != nil {
					t.Errorf("%+v", got)
				}
			}
		})
	})
	w.Server(i).Start()
	w.Node(i).Start()
	w.Even()
	w.Agree()
	t.Logf("%+v", w.Prove())
}
