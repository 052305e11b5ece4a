// Package lease says which node owns which partition: one key a partition in a
// NATS KV bucket on disk, written only when it changes hands.
//
// # Guarantees
//
//   - Of two nodes that reach for a partition at once, one gets it.
//   - A partition whose owner is a living member is never taken.
//   - What was taken, or whose key is gone, is given up as soon as it is seen;
//     nothing acts there before it is taken again, under a higher epoch.
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
	// Lost says that it no longer is. It returns when nothing acts there.
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
	Logger *slog.Logger
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

	mu   sync.Mutex
	kv   jetstream.KeyValue
	seen map[messages.Partition]jetstream.KeyValueEntry
	held map[messages.Partition]hold
}

// hold is a lease of ours: the revision it was written at, and its epoch.
type hold struct {
	rev   uint64
	epoch messages.Epoch
}

// value is what a lease's key holds.
type value struct {
	Member string `json:"member"`
	// Floor is the least epoch that the owner may take: one more than any seen.
	Floor messages.Epoch `json:"floor"`
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
		held: make(map[messages.Partition]hold),
	}
	s, err := l.open(ctx, run)
	if err != nil {
		cancel()
		return nil, err
	}
	go l.run(run, s)
	return l, nil
}

// Settled waits until every partition was looked at once: those that were free
// are this node's then.
func (l *Leases) Settled(ctx context.Context) error {
	select {
	case <-l.settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Owner is the living member that the partition is leased to; empty if none.
func (l *Leases) Owner(p messages.Partition) string {
	l.mu.Lock()
	v, ok := read(l.seen[p])
	l.mu.Unlock()
	if !ok || !l.cfg.Members.Alive(v.Member) {
		return ""
	}
	return v.Member
}

// Held is how many partitions this node owns.
func (l *Leases) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// Release gives every partition up: first nothing acts there any more, then
// the lease goes.
func (l *Leases) Release(ctx context.Context) {
	l.cancel()
	<-l.done
	l.mu.Lock()
	held, kv := l.held, l.kv
	l.held = make(map[messages.Partition]hold)
	l.mu.Unlock()
	var wg sync.WaitGroup
	for p, h := range held {
		wg.Go(func() {
			l.cfg.Owner.Lost(p)
			if b, err := json.Marshal(value{Floor: h.epoch}); err == nil {
				_, _ = kv.Update(ctx, key(p), b, h.rev) // else others wait until we are gone
			}
		})
	}
	wg.Wait()
}
