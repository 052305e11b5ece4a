// Package ownership keeps which nodes are members of the cluster, and which of them owns
// each partition, under which epoch.
//
// A member keeps a key with a time to live in one NATS KV bucket and renews it by
// heartbeats. The owner of a partition is named by its lease, a key in another bucket,
// written by compare-and-set and only when it changes hands. One watch shows both; one pure
// plan follows from what it shows; what the plan wants is carried out in the background.
//
// # Members
//
//   - A member whose heartbeats end is gone for all others [TTL] later; one whose process or
//     connection has ended, so that its ping has no subscriber, usually within half a second,
//     or a second where there are several servers: each member pings the next one in the
//     order of their ids.
//   - Time in which this node does not see its own heartbeats counts against no member:
//     a server that was restarted and forgot all of them, one that elects a leader, and a
//     watch that shows nothing each give the others TTL to come back.
//   - The trust window: a member trusts its own membership from the start of its newest
//     heartbeat until a heartbeat before others give it up, by the clock that runs while
//     the process is stopped and by the wall clock, which runs while the machine is. A
//     member whose key was removed learns it at its next heartbeat.
//   - When trust comes back, or the key had to be made again, another incarnation begins. It
//     is trusted once all leases were read again and nothing acts here any more where another
//     node may be owner.
//
// # Leases
//
//   - Of two nodes that take a partition at once, one gets it.
//   - A partition whose owner is a living member is never taken. Where shares are uneven the
//     owner itself hands partitions over: in small steps, once that has been so for a while,
//     drained first. The lease then names who is to take it.
//   - A member that drains hands its partitions over and takes none as long as there is one
//     that does not drain. Where all drain each keeps what it has and takes what is free.
//   - A free partition is taken by the member that the plan gives it to, by another only
//     after that one did not.
//   - What was taken, or whose lease is gone, is given up as soon as the watch shows it;
//     nothing acts there before it is taken again, under a higher epoch.
//   - An epoch is at least the revision of its lease, and more than any epoch that the taker
//     saw in the log, at the inputs and in the lease before, also over a restored or
//     recreated bucket.
//
// A lease is who should write. Who can is decided by the log's fence.
package ownership

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Owner acts for the partitions that this node owns. Its methods are called one at a
// time for each partition.
type Owner interface {
	// Prepare reads a partition's heads before it is taken and returns the highest epoch
	// of its owners so far, as far as they have left one. It may be called again.
	Prepare(ctx context.Context, p messages.Partition) (messages.Epoch, error)
	// Acquired makes the partition this node's under epoch. After an error it is not,
	// and is tried again.
	Acquired(p messages.Partition, epoch messages.Epoch) error
	// Drain begins nothing there that must not be cut off, and waits until nothing of the
	// kind is under way, or ctx ends; it returns which. Lost follows, or Stay.
	Drain(ctx context.Context, p messages.Partition) (quiet bool)
	// Stay ends a drain: the partition is not handed over.
	Stay(p messages.Partition)
	// Lost stops what acts there, if anything does. It returns when nothing does any more, or when it has
	// waited for that in vain: what is still done then is refused by the fence.
	Lost(p messages.Partition)
}

// Config is what a node needs to join.
type Config struct {
	JetStream jetstream.JetStream
	Root      string
	// Replicas of the buckets, if they have to be made.
	Replicas int
	Self     Info
	Owner    Owner
	// Moved is called after a partition's lease has changed. It must not block.
	Moved func(messages.Partition)
	// DrainLimit is how long a node that drains waits for what must not be cut off.
	DrainLimit time.Duration
	Logger     *slog.Logger
}

// Ownership is a node's membership, its leases, and what it sees of those of others.
// Before [Ownership.Join] there are none. Safe for concurrent use.
type Ownership struct {
	cfg     Config
	conn    *nats.Conn
	end     context.CancelFunc // of the loops
	loops   sync.WaitGroup
	work    context.Context // ends what waits in works
	stop    context.CancelFunc
	works   sync.WaitGroup
	wake    chan struct{}     // receives when there is something to plan
	renew   chan chan<- error // asks for a heartbeat now
	warning *time.Timer       // fires when the trust window ends; nil: there was no heartbeat

	mu sync.Mutex
	trust
	state
	members, leases jetstream.KeyValue
	settled         bool     // the takes of the first plan have ended
	released        bool     // nothing is planned any more
	handed          []string // what was handed over and not logged yet, with its epochs
	handedTo        map[string]int
	changed         chan struct{} // closed at the next change
}

// New returns the ownership of a node that has not joined.
func New(cfg Config) *Ownership {
	return &Ownership{
		cfg: cfg, conn: cfg.JetStream.Conn(), wake: make(chan struct{}, 1), renew: make(chan chan<- error), changed: make(chan struct{}),
		handedTo: make(map[string]int),
		trust:    trust{unsure: true},
		state:    state{self: cfg.Self, seen: make(map[string]member), unable: make(map[string]time.Time)},
	}
}

// Join makes the node a member, and begins to take partitions. After an error it may be
// called again; else Close ends it.
func (o *Ownership) Join(ctx context.Context) error {
	ping, err := o.conn.Subscribe(o.pingSubject(o.self.ID), o.answerPing)
	if err != nil {
		return err
	}
	run, end := context.WithCancel(context.Background())
	o.end = func() { end(); _ = ping.Unsubscribe(); o.loops.Wait(); o.remove() }
	o.work, o.stop = context.WithCancel(context.Background())
	o.loops.Go(func() { o.heartbeats(run) })
	w, err := o.open(ctx, run)
	if err != nil {
		o.end()
		return err
	}
	o.loops.Go(func() { o.run(run, w) })
	o.loops.Go(func() { o.probe(run) })
	return nil
}

// Settled waits until every partition was looked at once, and those that this node was to
// take then are taken.
func (o *Ownership) Settled(ctx context.Context) error {
	return o.await(ctx, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.settled
	})
}

// await waits until is reports so, after one change or another.
func (o *Ownership) await(ctx context.Context, is func() bool) error {
	for {
		o.mu.Lock()
		changed := o.changed
		o.mu.Unlock()
		if is() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close releases what this node owns: first nothing acts there any more, then the lease
// goes. Then the node is no member any more.
func (o *Ownership) Close() {
	o.mu.Lock()
	o.released = true
	o.mu.Unlock()
	o.stop()
	o.works.Wait()
	o.mu.Lock()
	for p := range o.partitions {
		if o.partitions[p].held() {
			o.begin(o.decide(handOver, p, ""))
		}
	}
	o.logHanded()
	o.mu.Unlock()
	o.works.Wait()
	o.end()
}

// Owner returns the living owner of a partition and its epoch; empty: there is none.
func (o *Ownership) Owner(p messages.Partition) (node string, epoch messages.Epoch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.partitions[p].lease; o.living(l.Member, time.Now()) {
		return l.Member, l.epoch()
	}
	return "", 0
}

// Alive reports whether a node is a living member.
func (o *Ownership) Alive(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.living(id, time.Now())
}

// Meant returns the member that is to own each partition, as this node sees it: the one
// that does, or will once shares are even again. Empty: none.
func (o *Ownership) Meant() [messages.Partitions]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	meant, _ := o.meant()
	return meant
}

// Held returns how many partitions this node owns.
func (o *Ownership) Held() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count((*partition).held)
}

// Kept returns how many partitions this node has, those that it is about to take or to hand
// over among them, and those whose leases still name it.
func (o *Ownership) Kept() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count(func(p *partition) bool { return p.held() || p.doing != 0 || p.lease.Member == o.self.ID })
}

// Others reports whether there is another member that takes partitions.
func (o *Ownership) Others() bool {
	return slices.ContainsFunc(o.List(), func(i Info) bool { return i.ID != o.self.ID && !i.Draining })
}

// Empty waits until this node has no partition, and returns how many it has if ctx ends
// before, or if no other member takes any.
func (o *Ownership) Empty(ctx context.Context) (left int) {
	_ = o.await(ctx, func() bool {
		left = o.Kept()
		return left == 0 || !o.Others()
	})
	return left
}

// GiveUp releases a partition of this node in the background: first nothing acts there any
// more, then the lease goes. This node takes it again once [Owner.Prepare] lets it. One
// that is not this node's, or is being released or handed over, is left alone.
func (o *Ownership) GiveUp(p messages.Partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := &o.partitions[p]; at.held() && at.doing == 0 && !at.drained && !o.released {
		o.begin(o.decide(handOver, int(p), o.self.ID))
	}
}

// Doubt has the leases read again soon if this node owns the partition: one of its agents
// has met a newer owner.
func (o *Ownership) Doubt(p messages.Partition) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reread = o.reread || o.partitions[p].held()
}

// change wakes those who wait for a change, and the plan. o.mu is held.
func (o *Ownership) change() {
	close(o.changed)
	o.changed = make(chan struct{})
	o.poke()
}

// poke wakes the plan.
func (o *Ownership) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
