// Package lease says which node owns which partition: one key a partition in a
// NATS KV bucket on disk, written only when it changes hands.
//
// # Guarantees
//
//   - Of two nodes that reach for a partition at once, one gets it.
//   - A partition whose owner is a living member is never taken. Where members have
//     uneven shares, the owner itself gives it up, a few at a time and once that has
//     been so for a while; its lease then names who is to take it.
//   - A member that drains gives its partitions away and takes none as long as there
//     is one that does not drain. Where all drain each keeps what it has, and what is
//     free is taken by them as if none did.
//   - A free partition is taken by the member that the plan gives it to, by another
//     only if that one does not.
//   - What was taken, or whose key is gone, is given up as soon as it is seen, also
//     where it is just being handed over; nothing acts there before it is taken
//     again, under a higher epoch. A node whose membership had lapsed is trusted again
//     when all of that is done.
//   - The epoch of a partition grows with every owner, also over a restored or
//     recreated bucket: it is at least one more than any epoch that the taker
//     saw in the log or at the inputs.
//
// A lease is who should write. Who can is decided by the log's fence.
package lease

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/member"
	"github.com/reprise-dev/reprise/messages"
)

// Owner is told what the node comes to own. Its methods are called one at a
// time for each partition.
type Owner interface {
	// Prepare reads a partition's heads before it is taken and gives the
	// highest epoch of its owners so far, as far as they have left one. It may be
	// called again.
	Prepare(ctx context.Context, p messages.Partition) (messages.Epoch, error)
	// Acquired says that the partition is this node's under epoch. After an
	// error it is not, and is tried again.
	Acquired(p messages.Partition, epoch messages.Epoch) error
	// Drain begins nothing there that must not be cut off, and waits until nothing
	// of the kind is under way, or ctx ends; it says which. Lost follows, or Stay.
	Drain(ctx context.Context, p messages.Partition) (quiet bool)
	// Stay says that the partition is this node's for longer after all.
	Stay(p messages.Partition)
	// Lost says that it no longer is. It returns when nothing acts there, or when it
	// has waited for that in vain: what is still done then is refused by the fence.
	Lost(p messages.Partition)
}

// Config says where the leases are and who takes them.
type Config struct {
	Conn *nats.Conn
	Root string
	// Replicas of the bucket, if it has to be made.
	Replicas int
	Members  *member.Members
	Owner    Owner
	// Doubts receives partitions that somebody else may own by now.
	Doubts <-chan messages.Partition
	// Moved hears that a partition's lease is another one now; [Leases.Place] tells
	// which. It must not block. Nil: nobody does.
	Moved func(messages.Partition)
	// DrainLimit is how long a node that leaves waits for what must not be cut off.
	DrainLimit time.Duration
	Logger     *slog.Logger
}

// Leases keeps this node's leases and takes those that are free. Safe for
// concurrent use.
type Leases struct {
	cfg     Config
	self    string
	js      jetstream.JetStream
	cancel  context.CancelFunc
	done    chan struct{}
	settled chan struct{} // closed after the first look at everything
	again   chan struct{} // receives when there is something to look at
	working sync.WaitGroup
	// slow bounds how many partitions are handed over at once, fast how many are when
	// the node leaves.
	slow, fast chan struct{}

	mu     sync.Mutex
	looked bool // once
	// released reports that Release was called.
	released bool
	kv       jetstream.KeyValue
	session  int // counts those that have been
	seen     map[messages.Partition]jetstream.KeyValueEntry
	held     map[messages.Partition]hold
	// busy are the partitions that are being taken, handed over or given up; giving
	// ends the waiting of those that are handed over.
	busy   map[messages.Partition]doing
	giving map[messages.Partition]context.CancelFunc
	// free is since when a partition waits for the member that is to take it, later
	// until when this node does not try again to take one.
	free, later map[messages.Partition]time.Time
	// unable are members that did not take what was theirs, and until when they are
	// given nothing more.
	unable map[string]time.Time
	takers []string // the members that take partitions
	// keeps says that all members drain, and each keeps what it has.
	keeps bool
	// moves are those of our partitions that are to be another's.
	moves map[messages.Partition]move
	given given
	// changed is closed when held, busy or seen have changed.
	changed chan struct{}
}

// hold is a lease of ours: the revision it was written at, its epoch, and the
// session that knows of it.
type hold struct {
	rev     uint64
	epoch   messages.Epoch
	session int
}

// doing is what is done about a partition: done is closed when it is. Session is the
// one that a taking relies on; zero: it is no taking.
type doing struct {
	done    chan struct{}
	session int
}

// move is who is to have a partition, and since when that is so.
type move struct {
	to    string
	since time.Time
}

// value is what a lease's key holds.
type value struct {
	Member string `json:"member"`
	// Floor is the least epoch that the owner may take: one more than any seen.
	Floor messages.Epoch `json:"floor"`
	// Next is who is to take a partition that has been handed over; Member is empty.
	Next string `json:"next,omitempty"`
}

// epoch is what a lease's revision and floor make together.
func (v value) epoch(revision uint64) messages.Epoch {
	return max(messages.Epoch(revision), v.Floor)
}

func read(e jetstream.KeyValueEntry) (v value, ok bool) {
	if e == nil || e.Operation() != jetstream.KeyValuePut {
		return value{}, false
	}
	return v, json.Unmarshal(e.Value(), &v) == nil
}

// Open begins to take partitions; it returns at once.
func Open(ctx context.Context, cfg Config) (*Leases, error) {
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	l := &Leases{
		cfg: cfg, self: cfg.Members.Self(), js: js, cancel: cancel, done: make(chan struct{}), settled: make(chan struct{}),
		again: make(chan struct{}, 1), slow: make(chan struct{}, slowly), fast: make(chan struct{}, quickly),
		held: make(map[messages.Partition]hold), busy: make(map[messages.Partition]doing), giving: make(map[messages.Partition]context.CancelFunc),
		free: make(map[messages.Partition]time.Time), later: make(map[messages.Partition]time.Time), unable: make(map[string]time.Time), moves: make(map[messages.Partition]move),
		changed: make(chan struct{}),
	}
	s, err := l.open(ctx, run)
	if err != nil {
		cancel()
		return nil, err
	}
	go l.run(run, s)
	return l, nil
}

// Settled waits until every partition was looked at once: those that were free and
// are to be this node's are.
func (l *Leases) Settled(ctx context.Context) error {
	select {
	case <-l.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Place is the member that the partition is leased to, whether it lives or not, and
// its epoch; empty if nobody has it.
func (l *Leases) Place(p messages.Partition) (member string, epoch messages.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.seen[p]
	v, ok := read(e)
	if !ok || v.Member == "" {
		return "", 0
	}
	return v.Member, v.epoch(e.Revision())
}

// Held is how many partitions this node owns.
func (l *Leases) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// Empty waits until this node has no partition, and says how many it has if ctx ends
// before, or if nobody else takes any.
func (l *Leases) Empty(ctx context.Context) (left int) {
	members, stop := l.cfg.Members.Watch()
	defer stop()
	for {
		l.mu.Lock()
		left, changed := l.kept(), l.changed
		l.mu.Unlock()
		if left == 0 || !l.Others() {
			return left
		}
		select {
		case <-changed:
		case <-members:
		case <-ctx.Done():
			return left
		}
	}
}

// Kept is how many partitions this node has, those that it is about to take, to hand
// over or to give up among them, and those whose leases still name it.
func (l *Leases) Kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept()
}

func (l *Leases) kept() int {
	n := 0
	for p := range messages.Partition(messages.Partitions) {
		_, busy := l.busy[p]
		_, held := l.held[p]
		if v, ok := read(l.seen[p]); busy || held || ok && v.Member == l.self {
			n++
		}
	}
	return n
}

// Others says whether there is another member that takes partitions.
func (l *Leases) Others() bool {
	for _, m := range l.cfg.Members.List() {
		if m.ID != l.self && !m.Draining {
			return true
		}
	}
	return false
}

// Release ends the taking, and gives up what is still held: first nothing acts there
// any more, then the lease goes.
func (l *Leases) Release(ctx context.Context) {
	l.mu.Lock()
	l.released = true
	l.mu.Unlock()
	l.cancel()
	<-l.done
	l.working.Wait()
	l.mu.Lock()
	l.tellGiven()
	held, kv := l.held, l.kv
	l.held = make(map[messages.Partition]hold)
	l.mu.Unlock()
	var wg sync.WaitGroup
	for p, h := range held {
		wg.Go(func() {
			l.cfg.Owner.Lost(p)
			_, _ = write(ctx, kv, p, value{Floor: h.epoch}, h.rev) // else others wait until we are gone
		})
	}
	wg.Wait()
}

// tell wakes those who wait until held, busy or seen change. l.mu is held.
func (l *Leases) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// write puts a lease in the place of the one at a revision.
func write(ctx context.Context, kv jetstream.KeyValue, p messages.Partition, v value, rev uint64) (uint64, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	return kv.Update(ctx, key(p), b, rev)
}
