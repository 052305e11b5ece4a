//go:build unix

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/clustertest"
)

var (
	duration = flag.Duration("duration", 0, "how long a cluster is harmed; 0: not at all")
	nodes    = flag.Int("nodes", 3, "of the cluster, as it begins")
	servers  = flag.Int("servers", 1, "of NATS: 1 or 3")
)

// As first arguments these words make this program the product: nodeWord a node that
// ends with its standard input, commandWord any other command.
const (
	nodeWord    = "chaos-node"
	commandWord = "chaos-reprise"
)

// endWith ends the process when what it reads ends.
func endWith(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	os.Exit(2) // the test is gone
}

// TestCluster harms a cluster under load.
func TestCluster(t *testing.T) { // A28 A90 A94
	if *duration == 0 {
		t.Skip("make chaos-cluster runs it: -duration says how long")
	}
	c := newCluster(t)
	c.startLoad()
	for i := range historians {
		c.publishing.Go(func() { c.history.record(c.world, i) })
	}
	for at := time.Now(); time.Since(at) < *duration; {
		c.round(c.draw()...)
		if c.rounds%perGeneration == 0 {
			c.turnTo(int64(c.rounds / perGeneration))
		}
		if time.Since(c.told) > time.Minute {
			c.told = time.Now()
			t.Logf("after %s\n%s", time.Since(c.began).Round(time.Second), c.table(c.book.known(), time.Now()))
		}
	}
	c.bite()
	c.finish()
}

// cluster is nodes and servers that are harmed, and what is outside of them.
type cluster struct {
	*world
	at      *clustertest.World
	clients []*client.Client
	up      []*clustertest.Node // those that should be
	counts  map[string]int      // of faults, by name
	history *history
	outages []outage // one of each round
	first   []fault  // those that were not done yet
	rounds  int
	began   time.Time
	told    time.Time

	mu     sync.Mutex
	quiet  map[string]chan struct{} // of each process: closed when its tools are gone, too
	gone   []string                 // processes that have ended, and may have left tools
	hands  map[string]*os.File
	armed  *strike
	harmed bool      // a fault is in effect
	healed time.Time // when the newest one was over
}

// newCluster starts one.
func newCluster(t *testing.T) *cluster {
	limit := *duration + *duration/4 + 5*time.Minute // to come to rest and prove, too
	c := &cluster{counts: make(map[string]int), history: newHistory(), quiet: make(map[string]chan struct{}), hands: make(map[string]*os.File)}
	c.world = newWorld(t, limit)
	c.system, c.end, c.command = c, c.close, command(c.world)
	c.at = clustertest.New(t, clustertest.Dir(c.dir), clustertest.Nodes(0), clustertest.Servers(*servers), clustertest.SyncAlways(), clustertest.Limit(limit), clustertest.Program(c.node))
	for range *nodes {
		c.up = append(c.up, c.at.AddNode())
		c.letGo()
	}
	for range 3 {
		one, err := reach(c.ctx, c.at.URL())
		if err != nil {
			t.Fatal(err)
		}
		context.AfterFunc(c.ctx, one.Close)
		c.clients = append(c.clients, one)
	}
	for _, i := range c.random.Perm(len(faults)) {
		c.first = append(c.first, faults[i])
	}
	c.began, c.told = time.Now(), time.Now()
	return c
}

// command runs the product in a process of this program.
func command(w *world) func(ctx context.Context, args ...string) *exec.Cmd {
	return func(ctx context.Context, args ...string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			w.t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, self, append([]string{commandWord}, args...)...)
		cmd.Dir = w.dir
		return cmd
	}
}

// node is the process of a node. It holds the end of a pipe, and so do its tools.
func (c *cluster) node(process string, urls []string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	line, hand, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	quiet := make(chan struct{})
	c.mu.Lock()
	c.quiet[process], c.hands[process] = quiet, hand
	c.mu.Unlock()
	go func() {
		_, _ = io.Copy(io.Discard, line)
		_ = line.Close()
		close(quiet)
	}()
	cmd := exec.Command(self, nodeWord, "serve", "-o", "json", "--config", c.config(), "--nats", strings.Join(urls, ","),
		"--replicas", fmt.Sprint(*servers), "--idle", "1s", "--snapshot-every", "16", "--http", "off", "--index-dir", filepath.Join(c.dir, "index-"+process))
	if c.encrypted {
		cmd.Args = append(cmd.Args, "--key-file", c.key())
	}
	cmd.Dir, cmd.ExtraFiles = c.dir, []*os.File{hand}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "NO_COLOR=1"}
	return cmd
}

// letGo leaves the ends of pipes to the processes that were started.
func (c *cluster) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for process, hand := range c.hands {
		_ = hand.Close()
		delete(c.hands, process)
	}
}

// start starts a node that was stopped or killed.
func (c *cluster) start(n *clustertest.Node) {
	n.Start()
	c.letGo()
}

// ended records that a process is gone.
func (c *cluster) ended(process string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = append(c.gone, process)
}

// close ends what is left.
func (c *cluster) close() {
	c.release()
	if c.at != nil {
		for _, n := range c.up {
			n.Kill()
		}
	}
	c.letGo()
	c.gate.close()
	for _, quiet := range c.quiet {
		<-quiet
	}
}

// attemptTime is how long a client waits before it tries through another endpoint.
const attemptTime = 15 * time.Second

// open returns an endpoint, which is that of some node.
func (c *cluster) open(ctx context.Context) (*endpoint, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.mu.Lock()
	number := c.rounds + 1
	c.mu.Unlock()
	d := &endpoint{number: number, client: c.clients[rand.IntN(len(c.clients))]}
	d.ctx, d.close = context.WithTimeout(ctx, attemptTime)
	return d, nil
}

// stale is how long after a fault a node may still begin what was another's by then.
const stale = time.Second

// calm waits until no fault is in effect, nor was a moment ago, nothing is left of
// nodes that have ended, and no program works for the call.
func (c *cluster) calm(ctx context.Context, key string) error {
	for {
		if err := c.atRest(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		quiet := !c.harmed && time.Since(c.healed) >= stale
		c.mu.Unlock()
		if quiet {
			if busy, err := attended(c.ledger(), key); err != nil || !busy {
				return err
			}
		}
		select {
		case <-time.After(stale / 10):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// atRest waits until nothing is left of the nodes that have ended.
func (c *cluster) atRest(ctx context.Context) error {
	c.mu.Lock()
	gone := make([]chan struct{}, len(c.gone))
	for i, process := range c.gone {
		gone[i] = c.quiet[process]
	}
	c.mu.Unlock()
	for _, quiet := range gone {
		select {
		case <-quiet:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *cluster) tail() string {
	var b strings.Builder
	for _, n := range c.up {
		log, err := os.ReadFile(filepath.Join(c.dir, n.Name()+".log"))
		if err != nil {
			log = []byte(err.Error())
		}
		lines := strings.SplitAfter(string(log), "\n")
		fmt.Fprintf(&b, "%s:\n%s\n", n.Name(), strings.Join(lines[max(0, len(lines)-15):], ""))
	}
	return b.String()
}

// long is a run that must have had writes refused and forks detached. In a shorter one that is chance: a
// write must have been on its way when its agent's owner changed.
const long = 10 * time.Minute

// finish lets the cluster work off what is left, stops it and proves.
func (c *cluster) finish() {
	until := time.Now()
	proof := c.rest(c.clients[0])
	c.at.Even()
	c.at.Agree()
	account := c.at.ProveChains()
	for _, n := range c.up {
		n.Stop()
		c.ended(n.Process())
	}
	if err := c.atRest(c.ctx); err != nil {
		c.t.Fatal(errors.Join(errOver, err))
	}
	c.judge(proof)
	c.t.Log("history: " + c.history.prove(c.world))
	c.t.Logf("seed %d, %d nodes, %d servers, encrypted %t, %s: %+v; %s; %s\n%s", *seed, *nodes, *servers, c.encrypted,
		until.Sub(c.began).Round(time.Second), account, c.book, proof, c.table(proof.owned(), until))
	c.punctual(figure(proof.owned(), proof.sent, until), c.outages, *servers > 1)
	if account.Moves == 0 || *duration >= long && (c.fenced() == 0 || proof.detached() == 0) {
		c.t.Errorf("the run does not count: the fence refused %d writes, %d partitions moved, and %d forks were detached", c.fenced(), account.Moves, proof.detached())
	}
}
