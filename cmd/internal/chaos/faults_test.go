//go:build unix

package chaos

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/cluster/clustertest"
)

// fault is harm that is done to a cluster.
type fault struct {
	name string
	// weight is how often it is drawn, among the weights of all.
	weight int
	// strike does it and returns what undoes it. Of nodes it harms the one it is given.
	strike func(*cluster, *clustertest.Node) (undo func())
	// lasts is how long it is in effect at most, drawn evenly.
	lasts time.Duration
	// drains reports whether a node ends in order, which waits for the tools that run.
	drains bool
	// hangs is set if a node is silent, with its connections as they are.
	hangs bool
	// of the servers, not of a node.
	servers bool
}

// faults are all that is done.
var faults = []fault{
	{name: "kill", weight: 5, lasts: 4 * time.Second, strike: func(c *cluster, n *clustertest.Node) func() {
		n.Kill()
		c.ended(n.Process())
		return func() { c.start(n) }
	}},
	{name: "freeze", weight: 4, hangs: true, lasts: 7 * time.Second, strike: func(_ *cluster, n *clustertest.Node) func() {
		n.Freeze()
		return n.Thaw
	}},
	{name: "cut", weight: 3, lasts: 6 * time.Second, strike: func(_ *cluster, n *clustertest.Node) func() {
		n.Cut()
		return n.Heal
	}},
	{name: "mute", weight: 4, hangs: true, lasts: 7 * time.Second, strike: func(_ *cluster, n *clustertest.Node) func() {
		n.Mute()
		return n.Heal
	}},
	{name: "stall", weight: 2, hangs: true, lasts: 7 * time.Second, strike: func(_ *cluster, n *clustertest.Node) func() {
		n.Stall()
		return n.Heal
	}},
	{name: "stop", weight: 3, drains: true, lasts: time.Second, strike: func(c *cluster, n *clustertest.Node) func() {
		n.Stop()
		c.ended(n.Process())
		return func() { c.start(n) }
	}},
	{name: "join and leave", weight: 2, drains: true, lasts: 5 * time.Second, strike: func(c *cluster, _ *clustertest.Node) func() {
		n := c.at.AddNode()
		c.letGo()
		return func() {
			n.Stop()
			c.ended(n.Process())
		}
	}},
	{name: "kill a server", weight: 2, lasts: 3 * time.Second, servers: true, strike: func(c *cluster, _ *clustertest.Node) func() {
		s := c.at.Server(c.random.IntN(*servers))
		s.Kill()
		return s.Start
	}},
	{name: "freeze a server", weight: 1, lasts: 4 * time.Second, servers: true, strike: func(c *cluster, _ *clustertest.Node) func() {
		s := c.at.Server(c.random.IntN(*servers))
		s.Freeze()
		return s.Thaw
	}},
	{name: "NATS away", weight: 1, lasts: 5 * time.Second, servers: true, strike: func(c *cluster, _ *clustertest.Node) func() {
		for _, n := range c.up {
			n.Cut()
		}
		return func() {
			for _, n := range c.up {
				n.Heal()
			}
		}
	}},
}

// draw returns what is done in a round: one fault, sometimes two that do not touch. Each is done
// once before any is done again.
func (c *cluster) draw() []fault {
	all := 0
	for _, f := range faults {
		all += f.weight
	}
	one := func() fault {
		n := c.random.IntN(all)
		return faults[slices.IndexFunc(faults, func(f fault) bool { n -= f.weight; return n < 0 })]
	}
	var first fault
	if len(c.first) > 0 {
		first, c.first = c.first[0], c.first[1:]
	} else {
		first = one()
	}
	if c.random.IntN(4) > 0 {
		return []fault{first}
	}
	second := one()
	switch {
	case first.servers && second.servers:
		return []fault{first}
	case first.servers: // nodes start and stop only where there are servers
		return []fault{second, first}
	}
	return []fault{first, second}
}

// strike is a fault that comes with an event.
type strike struct {
	what    string
	left    atomic.Int64
	hold    bool
	reached chan struct{} // closed by the event
	struck  chan struct{} // closed when the fault is in effect
	undone  chan struct{} // closed when it is not any more
}

// met holds who meets the event that a fault comes with until it is in effect, or
// until it is over.
func (c *cluster) met(what string) {
	c.mu.Lock()
	s := c.armed
	c.mu.Unlock()
	if s == nil || s.what != what || s.left.Add(-1) != 0 {
		return
	}
	close(s.reached)
	until := s.struck
	if s.hold {
		until = s.undone
	}
	select {
	case <-until:
	case <-c.ctx.Done():
	}
}

// arm waits for the event that a fault comes with, but not for long.
func (c *cluster) arm(t trigger) {
	s := &strike{what: t.what, hold: t.hold, reached: make(chan struct{}), struck: make(chan struct{}), undone: make(chan struct{})}
	s.left.Store(t.n)
	c.mu.Lock()
	c.armed = s
	c.mu.Unlock()
	select {
	case <-s.reached:
	case <-time.After(3 * time.Second):
	case <-c.ctx.Done():
	}
	c.mu.Lock()
	c.harmed = true
	c.rounds++
	c.mu.Unlock()
}

// release lets what is held continue.
func (c *cluster) release() {
	c.mu.Lock()
	s := c.armed
	c.armed, c.harmed, c.healed = nil, false, time.Now()
	c.mu.Unlock()
	if s != nil {
		closeOnce(s.struck)
		closeOnce(s.undone)
	}
}

func closeOnce(done chan struct{}) {
	select {
	case <-done:
	default:
		close(done)
	}
}

// gap is how long the cluster is left alone after a fault: what was stale has
// continued by then, and a person may look.
const gap = 2500 * time.Millisecond

// round does some faults at once, undoes them, and sees that work continues.
func (c *cluster) round(some ...fault) {
	t := triggers[1+c.random.IntN(len(triggers)-1)]
	drains := slices.ContainsFunc(some, func(f fault) bool { return f.drains })
	hold := c.random.IntN(2) == 0 && !drains
	c.arm(trigger{what: t.what, n: 1 + c.random.Int64N(t.n), hold: hold})
	out := outage{from: time.Now(), held: hold}
	for _, f := range some {
		out.servers, out.hangs = out.servers || f.servers, out.hangs || f.hangs
	}
	harmed := c.random.Perm(len(c.up))
	var undo []func()
	longest := time.Duration(0)
	for i, f := range some {
		c.counts[f.name]++
		undo = append(undo, f.strike(c, c.up[harmed[i%len(harmed)]]))
		longest = max(longest, time.Duration(rand.Int64N(int64(f.lasts))))
	}
	closeOnce(c.armed.struck)
	c.pass(longest)
	for _, f := range slices.Backward(undo) {
		f()
	}
	c.release()
	out.to = time.Now()
	c.outages = append(c.outages, out)
	c.progress()
	c.pass(gap)
	for _, n := range c.up {
		if !n.Alive() {
			c.t.Fatalf("seed %d: after %s, %s has ended by itself\n%s", *seed, some[0].name, n.Name(), c.tail())
		}
	}
}

// bite mutes nodes until the fence has refused something, but not forever: a short run may have
// had no write on its way when it mattered.
func (c *cluster) bite() {
	mute := faults[slices.IndexFunc(faults, func(f fault) bool { return f.name == "mute" })]
	for range 12 {
		if c.fenced() > 0 {
			return
		}
		c.round(mute)
	}
}

func (c *cluster) pass(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
		c.t.Fatalf("seed %d: %v: %s", *seed, errOver, c.book)
	}
}

// progress waits until inputs are acknowledged, and facts shown, after a fault.
func (c *cluster) progress() {
	acks, facts := c.book.progress()
	for range patience * 10 {
		c.pass(100 * time.Millisecond)
		if a, f := c.book.progress(); a > acks+3 && f > facts+10 {
			return
		}
	}
	c.t.Fatalf("seed %d: no progress %d s after a fault: %s\n%s\n%s", *seed, patience, c.book, c.book.unended(), c.tail())
}
