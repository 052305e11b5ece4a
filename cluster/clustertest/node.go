//go:build unix

package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
)

// nodeRole is a node of Reprise.
type nodeRole struct {
	Name     string   // that of the process
	NATS     []string // one wire to each server
	Replicas int
	Model    string // where the model is
	Shop     string // where tools pay
}

// ready is what a node says of itself.
type ready struct {
	ID string `json:"node"`
}

// run is the process of a node.
func (r *nodeRole) run(stop <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := cluster.Config{
		NATS: strings.Join(r.NATS, ","), Replicas: r.Replicas, Version: "clustertest",
		// A wire is the only way: no other address that a server may name is taken.
		NATSOptions: []nats.Option{nats.IgnoreDiscoveredServers(), nats.DontRandomize(), nats.Timeout(2 * time.Second)},
		Logger:      slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", r.Name),
	}
	cfg.Providers, cfg.Agents = r.agents()
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if err := say(ready{node.ID()}); err != nil {
		return err
	}
	select {
	case <-stop:
	case <-node.Ended():
		return errors.Join(node.Err(), node.Close())
	}
	return node.Close()
}

// Node is a node of a [World]. Its methods are for the test's goroutine.
type Node struct {
	w     *World
	name  string
	lives atomic.Int64
	id    string // among the members, of the process that runs now
	wires []*wire
	at    *process
}

// AddNode starts one more node and returns when it says that it is ready. The i-th node
// connects to the i-th server while that is there, unless it is of a [Program] that
// chooses itself.
func (w *World) AddNode() *Node {
	w.t.Helper()
	n := &Node{w: w, name: fmt.Sprintf("node-%d", len(w.nodes))}
	for i := range w.servers { // first the one beside it
		s := w.servers[(len(w.nodes)+i)%len(w.servers)]
		wi, err := newWire(address(s.role.Port))
		w.ok(err)
		n.wires = append(n.wires, wi)
	}
	n.Start()
	if w.nodes = append(w.nodes, n); w.leases == nil { // the first node makes the bucket
		var err error
		w.leases, err = observe(w.ctx, w.js)
		w.ok(err)
	}
	return n
}

// Start starts the process of a node that was killed or stopped, under a new id,
// and returns when it says that it is ready. One that gives up before, as it does
// when NATS is too slow to answer, is started again, as a supervisor would.
func (n *Node) Start() {
	n.w.t.Helper()
	for range supervised {
		if n.begin() {
			n.w.book.Write(func() { n.w.book.process[n.id] = n.Process() })
			n.w.note("%s is ready, as %s", n.name, n.id)
			return
		}
		n.w.note("%s ended before it was ready", n.name)
	}
	n.w.t.Fatalf("%s does not become ready: %s", n.name, n.at.tail())
}

// supervised is how often a node is started before that is given up.
const supervised = 4

// begin starts a process; false if it ends before it is ready.
func (n *Node) begin() bool {
	n.w.t.Helper()
	n.lives.Add(1)
	r := nodeRole{Name: n.Process(), Replicas: len(n.w.servers), Model: n.w.model.url(), Shop: n.w.shop.url()}
	for _, wi := range n.wires {
		r.NATS = append(r.NATS, wi.url())
	}
	log := filepath.Join(n.w.dir, n.name+".log")
	var p *process
	var err error
	if n.w.program != nil {
		p, err = start(n.w.program(n.Process(), r.NATS), log)
	} else {
		p, err = spawn(role{Node: &r}, log)
	}
	n.w.ok(err)
	n.at, n.id = p, ""
	select {
	case line, ok := <-p.said:
		var is ready
		if !ok || json.Unmarshal(line, &is) != nil {
			p.kill()
			return false
		}
		n.id = is.ID
		return true
	case <-n.w.ctx.Done():
		p.kill()
		n.w.t.Fatalf("%s did not become ready: %s", n.name, p.tail())
		return false
	}
}

// Process names the node's process that was started last: its name and the number
// of its life, such as node-0#2.
func (n *Node) Process() string { return fmt.Sprintf("%s#%d", n.name, n.lives.Load()) }

// Name is the node's for people, the same in every life.
func (n *Node) Name() string { return n.name }

// ID is the node's among the members, another one in every life.
func (n *Node) ID() string { return n.id }

// Kill ends the process as loss of power would, frozen or not, and returns when it
// is gone.
func (n *Node) Kill() {
	n.w.note("%s is killed; held: %v", n.name, n.w.Held())
	n.at.kill()
}

// Stop asks the process to end in order and returns when it has.
func (n *Node) Stop() {
	n.w.t.Helper()
	n.w.note("%s is asked to stop; held: %v", n.name, n.w.Held())
	n.at.signal(syscall.SIGTERM)
	select {
	case <-n.at.dead:
	case <-n.w.ctx.Done():
		n.w.t.Fatalf("%s does not stop: %s", n.name, n.at.tail())
	}
	n.w.note("%s has stopped", n.name)
	if err := n.at.ended(); err != nil {
		n.w.t.Errorf("asked to stop, %s ended with %v\n%s", n.name, err, n.at.tail())
	}
}

// Freeze stops the process without its knowing, until Thaw. Its connections stay.
func (n *Node) Freeze() {
	n.w.note("%s is frozen", n.name)
	n.at.signal(syscall.SIGSTOP)
}

// Thaw undoes Freeze.
func (n *Node) Thaw() {
	n.w.note("%s is thawed", n.name)
	n.at.signal(syscall.SIGCONT)
}

// Cut breaks the node's connections to NATS and refuses new ones, until Heal. What
// was on the way is lost.
func (n *Node) Cut() {
	n.w.note("%s is cut off", n.name)
	for _, wi := range n.wires {
		wi.sever()
	}
}

// Mute keeps what the node sends to NATS on the way, until Heal. The node still receives, and no
// connection breaks.
func (n *Node) Mute() {
	n.w.note("%s is mute", n.name)
	for _, wi := range n.wires {
		wi.hold(up)
	}
}

// Stall keeps everything between the node and NATS on the way, until Heal, as a
// network does that drops packets.
func (n *Node) Stall() {
	n.w.note("%s is stalled", n.name)
	for _, wi := range n.wires {
		wi.hold(up)
		wi.hold(down)
	}
}

// Heal undoes Cut, Mute and Stall; what was kept on the way arrives now, in order.
func (n *Node) Heal() {
	n.w.note("%s is healed", n.name)
	for _, wi := range n.wires {
		wi.heal()
	}
}

// Appended waits until a mute node has sent a frame of each of some agents, none of which has
// arrived, or holds no lease any more: then it sends no more. It returns those of which it has.
func (n *Node) Appended(agents []string) (sent []string) {
	n.w.t.Helper()
	n.w.Eventually(fmt.Sprintf("%s sends frames of %v, or is deposed", n.name, agents), func() bool {
		deposed := n.w.leases.held()[n.id] == 0
		sent = slices.DeleteFunc(slices.Clone(agents), func(agent string) bool {
			text := "HPUB " + messages.Subjects{}.Log(agentID(agent)) + " "
			return !slices.ContainsFunc(n.wires, func(wi *wire) bool { return wi.holds(up, text) })
		})
		return deposed || len(sent) == len(agents)
	})
	n.w.note("%s has sent frames of %v", n.name, sent)
	return sent
}

// Refused is how many of the node's frames NATS has refused so far, because another node had
// written.
func (n *Node) Refused() (all int) {
	for _, wi := range n.wires {
		wi.mu.Lock()
		all += wi.refused
		wi.mu.Unlock()
	}
	return all
}

// Alive reports whether the node's process runs, frozen or not.
func (n *Node) Alive() bool { return n.at.alive() }

// Logged waits until the node, in this life or an earlier one, has logged a line
// with all of these words.
func (n *Node) Logged(words ...string) {
	n.w.t.Helper()
	n.w.Eventually(fmt.Sprintf("%s logs %q", n.name, words), func() bool {
		b, err := os.ReadFile(n.at.log)
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(b)) {
			if containsAll(line, words) {
				return true
			}
		}
		return false
	})
}

// sound holds that no process of the node has panicked, or raced.
func (n *Node) sound() {
	b, err := os.ReadFile(n.at.log)
	if err != nil {
		n.w.t.Error(err)
		return
	}
	for _, bad := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE"} {
		if _, after, found := strings.Cut(string(b), bad); found {
			n.w.t.Errorf("%s has logged %s%.6000s", n.name, bad, after)
		}
	}
}

func containsAll(line string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(line, word) {
			return false
		}
	}
	return true
}
