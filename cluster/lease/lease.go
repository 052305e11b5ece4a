// Package lease says which node owns which partition: one key a partition in a
// NATS KV bucket on disk, written only when it changes hands.
//
// # Guarantees
//
//   - Of two nodes that reach for a partition at once, one gets it.
//   - A partition whose owner is a living member is never taken.
//   - The epoch of a partition grows with every owner, also over a restored or
//     recreated bucket: it is at least one more than any epoch that the taker
//     saw in the log.
//
// A lease is who should write. Who can is decided by the log's fence.
package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// highest epoch seen there. It may be called again.
	Prepare(ctx context.Context, p messages.Partition) (messages.Epoch, error)
	// Acquired says that the partition is this node's under epoch.
	Acquired(p messages.Partition, epoch messages.Epoch)
	// Lost says that it no longer is. It returns when nothing acts there.
	Lost(p messages.Partition)
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

// Leases keeps this node's leases and takes those that are free. Safe for
// concurrent use.
type Leases struct {
	kv      jetstream.KeyValue
	members *member.Members
	owner   Owner
	logger  *slog.Logger
	cancel  context.CancelFunc
	done    chan struct{}
	settled chan struct{} // closed after the first look at everything

	mu   sync.Mutex
	seen map[messages.Partition]jetstream.KeyValueEntry
	held map[messages.Partition]hold
}

// hold is a lease of ours: the revision it was written at, and its epoch.
type hold struct {
	rev   uint64
	epoch messages.Epoch
}

// Open begins to take partitions; it returns at once.
func Open(ctx context.Context, nc *nats.Conn, root string, replicas int, members *member.Members, owner Owner, logger *slog.Logger) (*Leases, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: root + "_leases", Description: "reprise: who owns which partition",
		Storage: jetstream.FileStorage, History: 1, Replicas: max(replicas, 1),
	})
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	l := &Leases{
		kv: kv, members: members, owner: owner, logger: logger, cancel: cancel, done: make(chan struct{}), settled: make(chan struct{}),
		seen: make(map[messages.Partition]jetstream.KeyValueEntry), held: make(map[messages.Partition]hold),
	}
	watcher, err := kv.WatchAll(run)
	if err != nil {
		cancel()
		return nil, err
	}
	go l.run(run, watcher)
	return l, nil
}

// backstop is how often everything is looked at even if nothing was heard.
const backstop = time.Second

func (l *Leases) run(ctx context.Context, w jetstream.KeyWatcher) {
	defer close(l.done)
	defer func() { _ = w.Stop() }()
	ticker := time.NewTicker(backstop)
	defer ticker.Stop()
	told, settled := false, false
	for {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return
			case e == nil:
				told = true
			default:
				l.saw(e)
				continue
			}
		case <-l.members.Changed():
		case <-ticker.C:
			l.probe(ctx)
		case <-ctx.Done():
			return
		}
		if told {
			l.take(ctx)
			if !settled {
				settled = true
				close(l.settled)
			}
		}
	}
}

func key(p messages.Partition) string { return "p." + p.String() }

func (l *Leases) saw(e jetstream.KeyValueEntry) {
	var p messages.Partition
	if _, err := fmt.Sscanf(e.Key(), "p.%d", &p); err != nil || p >= messages.Partitions {
		return
	}
	l.mu.Lock()
	l.seen[p] = e
	h, held := l.held[p]
	lost := held && e.Revision() > h.rev
	if lost {
		delete(l.held, p)
	}
	l.mu.Unlock()
	if lost {
		l.logger.Warn("a partition was taken by another node", "partition", p)
		l.owner.Lost(p)
	}
}

// probe pings the owners that keep us from a partition.
func (l *Leases) probe(ctx context.Context) {
	others := make(map[string]bool)
	l.mu.Lock()
	for _, e := range l.seen {
		if v, ok := read(e); ok && v.Member != l.members.Self() {
			others[v.Member] = true
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, backstop/2)
	defer cancel()
	for id := range others {
		l.members.Probe(ctx, id)
	}
}

func read(e jetstream.KeyValueEntry) (v value, ok bool) {
	if e == nil || e.Operation() != jetstream.KeyValuePut {
		return value{}, false
	}
	return v, json.Unmarshal(e.Value(), &v) == nil
}

// take reaches for every partition that no living member owns.
func (l *Leases) take(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	limit := make(chan struct{}, 16)
	for p := range messages.Partition(messages.Partitions) {
		l.mu.Lock()
		_, ours := l.held[p]
		seen := l.seen[p]
		l.mu.Unlock()
		v, leased := read(seen)
		if ours || leased && v.Member != l.members.Self() && l.members.Alive(v.Member) {
			continue
		}
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if err := l.acquire(ctx, p, seen); err != nil && ctx.Err() == nil && !errors.Is(err, jetstream.ErrKeyExists) {
				l.logger.Warn("a partition could not be taken; it will be tried again", "partition", p, "error", err)
			}
		})
	}
}

func (l *Leases) acquire(ctx context.Context, p messages.Partition, seen jetstream.KeyValueEntry) error {
	highest, err := l.owner.Prepare(ctx, p)
	if err != nil {
		return err
	}
	before, leased := read(seen)
	v := value{Member: l.members.Self(), Floor: highest + 1}
	if leased {
		v.Floor = max(v.Floor, before.epoch(seen.Revision())+1)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var rev uint64
	if seen == nil {
		rev, err = l.kv.Create(ctx, key(p), b)
	} else {
		rev, err = l.kv.Update(ctx, key(p), b, seen.Revision())
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.held[p] = hold{rev, v.epoch(rev)}
	l.mu.Unlock()
	l.owner.Acquired(p, v.epoch(rev))
	return nil
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
	if !ok || !l.members.Alive(v.Member) {
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
	held := l.held
	l.held = make(map[messages.Partition]hold)
	l.mu.Unlock()
	var wg sync.WaitGroup
	for p, h := range held {
		wg.Go(func() {
			l.owner.Lost(p)
			if b, err := json.Marshal(value{Floor: h.epoch}); err == nil {
				_, _ = l.kv.Update(ctx, key(p), b, h.rev)
			}
		})
	}
	wg.Wait()
}
