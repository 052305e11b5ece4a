//go:build unix

package clustertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// World is a cluster of a test's own and what is outside of it. Methods that fail
// end the test, so they are for the test's goroutine, unless they say otherwise.
type World struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	began   time.Time
	servers []*Server
	nodes   []*Node
	model   *model
	shop    *shop
	book    *book
	leases  *observer
	nc      *nats.Conn
	js      jetstream.JetStream
	client  *client.Client
	program func(process string, nats []string) *exec.Cmd

	loads   []*Load
	running sync.WaitGroup

	mu    sync.Mutex
	notes []string
}

// Option is something that a test wants of its world.
type Option func(*options)

type options struct {
	nodes, servers int
	sync           bool
	limit          time.Duration
	dir            string
	program        func(process string, nats []string) *exec.Cmd
}

// Nodes is how many nodes are started. Without it: 3.
func Nodes(n int) Option { return func(o *options) { o.nodes = n } }

// Servers is how many NATS servers there are, 1 or 3; three keep three copies of
// everything. Without it: 1.
func Servers(n int) Option { return func(o *options) { o.servers = n } }

// SyncAlways has the servers force each message to disk before they acknowledge it, as
// the product's own does. Without it they do so every two minutes.
func SyncAlways() Option { return func(o *options) { o.sync = true } }

// Limit is when the world's time is over and the test fails. Without it: four
// minutes.
func Limit(d time.Duration) Option { return func(o *options) { o.limit = d } }

// Dir is where servers keep their streams and all write their logs; it must be
// there, and stays. Without it: a folder that goes with the test.
func Dir(path string) Option { return func(o *options) { o.dir = path } }

// Program makes nodes of another program than this one: of gets the name of the process and where
// the servers are, one behind each wire. The program's first line says in JSON under which id it
// is ready, as reprise serve -o json does; it must end when its standard input does. No [Load]
// can be put on such nodes.
func Program(of func(process string, nats []string) *exec.Cmd) Option {
	return func(o *options) { o.program = of }
}

// New starts a world: its servers, then its nodes, one after the other. It returns
// when every node has its share of the partitions. The test runs in parallel with others,
// and is skipped in short mode.
func New(t *testing.T, opts ...Option) *World {
	t.Helper()
	embeddedtest.Long(t, "processes")
	t.Parallel()
	o := options{nodes: 3, servers: 1, limit: 4 * time.Minute}
	for _, opt := range opts {
		opt(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	w := &World{t: t, ctx: ctx, dir: o.dir, program: o.program, began: time.Now(), book: newBook()}
	if w.dir == "" {
		w.dir = t.TempDir()
	}
	t.Cleanup(func() { w.close(cancel) })
	var err error
	w.shop, err = openShop()
	w.ok(err)
	w.model, err = openModel()
	w.ok(err)
	w.ok(w.startServers(o.servers, o.sync))
	w.connect()
	w.Eventually("every server keeps copies", func() bool {
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err := w.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "clustertest", Storage: jetstream.MemoryStorage, Replicas: o.servers})
		return err == nil && w.js.DeleteStream(ctx, "clustertest") == nil
	})
	for range o.nodes {
		w.AddNode()
	}
	if w.program == nil {
		for _, name := range logStreams() {
			w.running.Go(func() { w.watchEnds(w.ctx, name) })
		}
	}
	if o.nodes > 0 {
		w.Even()
	}
	return w
}

// connect connects the test itself, without a wire.
func (w *World) connect() {
	w.t.Helper()
	var err error
	w.eventually(func() string { return fmt.Sprintf("the test is connected: %v", err) }, func() bool { // in two seconds each time
		w.nc, err = nats.Connect(w.URL(), nats.Name("clustertest"), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
			nats.RetryOnFailedConnect(false), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		return err == nil
	})
	w.js, err = jetstream.New(w.nc)
	w.ok(err)
	w.eventually(func() string { return fmt.Sprintf("its client is connected: %v", err) }, func() bool { // in five
		w.client, err = client.Connect(w.ctx, client.Options{URL: w.URL(), Name: "clustertest client"})
		return err == nil
	})
}

// close ends everything; of a test that failed it shows what was noted and logged.
func (w *World) close(cancel context.CancelFunc) {
	cancel()
	for _, n := range w.nodes {
		n.sound()
	}
	if w.t.Failed() {
		w.t.Logf("what was done:\n%s", strings.Join(w.noted(), "\n"))
		w.tails()
	}
	for _, n := range w.nodes {
		n.at.kill()
		for _, wi := range n.wires {
			wi.close()
		}
	}
	for _, s := range w.servers {
		s.at.kill()
	}
	if w.client != nil {
		w.client.Close()
	}
	if w.nc != nil {
		w.nc.Close()
	}
	if w.model != nil {
		w.model.close()
	}
	if w.shop != nil {
		w.shop.close()
	}
	for _, l := range w.loads {
		l.running.Wait()
	}
	w.running.Wait()
	if w.leases != nil {
		<-w.leases.done
	}
}

func (w *World) tails() {
	for _, s := range w.servers {
		w.t.Log(s.at.tail())
	}
	for _, n := range w.nodes {
		w.t.Log(n.at.tail())
	}
}

func (w *World) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// note keeps what was done and when, for the log of a test that fails.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf("%8s  ", time.Since(w.began).Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	if os.Getenv("REPRISE_TEST_LOG") != "" {
		_, _ = fmt.Fprintln(os.Stderr, w.t.Name(), line)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, line)
}

func (w *World) noted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.notes...)
}

// Context ends with the world's time, or with the test.
func (w *World) Context() context.Context { return w.ctx }

// Node is the i-th node that was started.
func (w *World) Node(i int) *Node { return w.nodes[i] }

// Server is the i-th NATS server.
func (w *World) Server(i int) *Server { return w.servers[i] }

// Client talks to the cluster over a connection of the test's own, which no cut
// reaches. Safe for concurrent use.
func (w *World) Client() *client.Client { return w.client }

// URL is where clients find all servers, without a wire.
func (w *World) URL() string {
	var urls []string
	for _, s := range w.servers {
		urls = append(urls, s.URL())
	}
	return strings.Join(urls, ",")
}

// Moves counts the changes of owner of partitions so far, the first ones left out.
// Safe for concurrent use.
func (w *World) Moves() int {
	w.leases.mu.Lock()
	defer w.leases.mu.Unlock()
	return max(0, w.leases.moves-messages.Partitions)
}

// StoodStill is how often a process of the world, or the test's, has stood still for a
// second so far, as all say of themselves but nodes of a [Program].
func (w *World) StoodStill() int {
	w.t.Helper()
	times := StoodStill()
	logs := make([]string, 0, len(w.servers)+len(w.nodes))
	for _, s := range w.servers {
		logs = append(logs, s.at.log)
	}
	for _, n := range w.nodes {
		logs = append(logs, n.at.log)
	}
	for _, log := range logs {
		b, err := os.ReadFile(log)
		w.ok(err)
		times += strings.Count(string(b), stoodStill)
	}
	return times
}

// Conn is the test's own connection to NATS.
func (w *World) Conn() *nats.Conn { return w.nc }

// Eventually looks again and again until something holds; only the world's time
// bounds it.
func (w *World) Eventually(what string, holds func() bool) {
	w.t.Helper()
	w.eventually(func() string { return what }, holds)
}

func (w *World) eventually(what func() string, holds func() bool) {
	w.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			w.t.Fatalf("%s: it did not happen", what())
		}
	}
}

// Owner is the node that an agent's partition is leased to, waiting until that is
// one of this world.
func (w *World) Owner(agent string) *Node {
	w.t.Helper()
	p := w.partition(agent)
	var owner *Node
	w.Eventually("somebody owns "+agent, func() bool {
		owner = w.byID(w.leases.holder(p))
		return owner != nil
	})
	return owner
}

func (w *World) byID(id string) *Node {
	for _, n := range w.nodes {
		if n.id == id && id != "" {
			return n
		}
	}
	return nil
}

func (w *World) partition(agent string) messages.Partition {
	w.t.Helper()
	a, err := messages.ParseAgentID(agent)
	w.ok(err)
	return a.Partition()
}

// AgentsOf returns n agents of a kind that a node owns; none was named before. The node must own
// a partition.
func (w *World) AgentsOf(owner *Node, kind string, n int) (agents []string) {
	w.t.Helper()
	for len(agents) < n {
		agent := fmt.Sprintf("%s/a%d", kind, w.book.serial())
		if w.leases.holder(w.partition(agent)) == owner.id {
			agents = append(agents, agent)
		}
		if w.ctx.Err() != nil {
			w.t.Fatalf("%s owns nothing", owner.name)
		}
	}
	return agents
}

// OfEach returns an agent of a kind for each partition; none was named before.
func (w *World) OfEach(kind string) (agents []string) {
	w.t.Helper()
	agents = make([]string, messages.Partitions)
	for missing := len(agents); missing > 0; {
		agent := fmt.Sprintf("%s/a%d", kind, w.book.serial())
		if p := w.partition(agent); agents[p] == "" {
			agents[p] = agent
			missing--
		}
	}
	return agents
}

// Busiest is the living node that owns the most partitions.
func (w *World) Busiest() *Node {
	w.t.Helper()
	var most *Node
	w.Eventually("somebody owns partitions", func() bool {
		held := w.leases.held()
		for _, n := range w.nodes {
			if n.at.alive() && held[n.id] > 0 && (most == nil || held[n.id] > held[most.id]) {
				most = n
			}
		}
		return most != nil
	})
	return most
}

// Even waits until the living nodes own all partitions, each as many as the others
// but for one.
func (w *World) Even() {
	w.t.Helper()
	w.eventually(func() string { return fmt.Sprintf("the partitions are even, and not %v", w.Held()) }, func() bool {
		held, least, most, all := w.leases.held(), messages.Partitions, 0, 0
		for _, n := range w.nodes {
			if n.at.alive() {
				least, most, all = min(least, held[n.id]), max(most, held[n.id]), all+held[n.id]
			}
		}
		return all == messages.Partitions && most-least <= 1
	})
	w.note("the partitions are even: %v", w.Held())
}

// Held is how many partitions are leased to each node that has any, by name.
func (w *World) Held() map[string]int {
	by := make(map[string]int)
	for id, n := range w.leases.held() {
		if node := w.byID(id); node != nil {
			by[node.name] = n
		}
	}
	return by
}

// Deposed waits until a node holds no lease any more.
func (w *World) Deposed(n *Node) {
	w.t.Helper()
	w.Eventually(n.name+" holds no lease any more", func() bool { return w.leases.held()[n.id] == 0 })
	w.note("%s holds no lease any more; held: %v", n.name, w.Held())
}
