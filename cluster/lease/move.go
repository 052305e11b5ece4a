package lease

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

const (
	// slowly is how many partitions are handed over at once to make shares even,
	// quickly how many are when the node leaves, draining how many may wait meanwhile
	// for what is under way there.
	slowly, quickly, draining = 2, 16, 8
	// calm is for how long another must have been to have a partition before it is
	// given: members that come and go, and those of whom one hears that they leave only
	// after their partitions have come, set nothing in motion.
	calm = 500 * time.Millisecond
	// drained is how long a partition may wait for what is under way there.
	drained = 10 * time.Second
	// unquiet is for how long one that did not come to rest is left alone.
	unquiet = 30 * time.Second
	// grace is how long a free partition waits for the member that is to take it.
	grace = 2 * time.Second
	// unfit is for how long a member that did not is given nothing more: it may only
	// have been slow, and shares are uneven meanwhile.
	unfit = 10 * time.Second
	// beaten is how long a node that was not first leaves a partition alone.
	beaten = 100 * time.Millisecond
)

// give hands a partition over in the background. l.mu is held.
func (l *Leases) give(ctx context.Context, p messages.Partition, leaves bool) {
	h, kv := l.held[p], l.kv
	lane := l.slow
	limit := drained
	if leaves {
		lane, limit = l.fast, l.cfg.DrainLimit
	}
	waiting, end := context.WithTimeout(ctx, limit)
	gone, taken := context.WithCancel(context.WithoutCancel(ctx))
	l.giving[p] = func() { taken(); end() }
	l.given.begin()
	l.work(p, 0, func() {
		defer l.end()
		defer taken()
		defer end()
		quiet := l.cfg.Owner.Drain(waiting, p)
		select {
		case lane <- struct{}{}:
			defer func() { <-lane }()
		case <-gone.Done(): // what another has is given up at once
		}
		began := time.Now()
		l.mu.Lock()
		delete(l.giving, p)
		next := l.plan()[p]
		stays := next == l.self || next == "" || l.keeps || !quiet && !leaves
		if stays && gone.Err() == nil && l.ours(p, h) {
			l.moves[p] = move{next, began.Add(unquiet)}
			l.mu.Unlock()
			l.cfg.Owner.Stay(p)
			l.cfg.Logger.Info("a partition stays for now", "partition", p, "epoch", h.epoch, "meant for", next, "a tool runs that must not be cut off", !quiet)
			return
		}
		delete(l.held, p)
		l.mu.Unlock()
		l.cfg.Owner.Lost(p)
		if gone.Err() != nil {
			l.cfg.Logger.Warn("a partition was taken while it was being handed over", "partition", p, "epoch", h.epoch)
			return
		}
		if err := l.handOver(ctx, kv, p, value{Floor: h.epoch, Next: next}, h.rev); err != nil {
			l.cfg.Logger.Warn("a partition could not be handed over", "partition", p, "epoch", h.epoch, "to", next, "error", err)
			return
		}
		l.gave(p, h.epoch, next, began)
	})
}

// GiveUp gives a partition of this node up, in the background: first nothing acts
// there any more, then the lease goes. This node takes it again once
// [Owner.Prepare] lets it. One that is not this node's, or is being given up or handed
// over, is left alone.
func (l *Leases) GiveUp(p messages.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, held := l.held[p]
	if _, busy := l.busy[p]; !held || busy || l.released {
		return
	}
	delete(l.held, p)
	kv := l.kv
	l.work(p, 0, func() {
		l.cfg.Owner.Lost(p)
		if err := l.handOver(context.Background(), kv, p, value{Floor: h.epoch, Next: l.self}, h.rev); err != nil {
			l.cfg.Logger.Warn("a partition could not be given up; it is tried again", "partition", p, "epoch", h.epoch, "error", err)
		}
	})
}

// handOver writes the lease of a partition where nothing acts any more, also after ctx
// has ended.
func (l *Leases) handOver(ctx context.Context, kv jetstream.KeyValue, p messages.Partition, v value, rev uint64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	rev, err := write(ctx, kv, p, v, rev)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.seen[p]; l.kv == kv && (e == nil || e.Revision() < rev) {
		l.seen[p] = written{v: v, rev: rev} // before the watch tells
	}
	return nil
}

// handBack hands a partition over in the background that this node does not have
// though its lease says so: that could not be written when it was handed over, or it
// was written without an answer when it was taken. l.mu is held.
func (l *Leases) handBack(ctx context.Context, p messages.Partition, v value, next string) {
	rev, kv := l.seen[p].Revision(), l.kv
	epoch, began := v.epoch(rev), time.Now()
	l.given.begin()
	l.work(p, 0, func() {
		defer l.end()
		err := l.handOver(ctx, kv, p, value{Floor: epoch, Next: next}, rev)
		if l.failed(ctx, p, err); err == nil {
			l.gave(p, epoch, next, began)
		}
	})
}

// ours says that nothing that is seen contradicts a lease of ours. l.mu is held.
func (l *Leases) ours(p messages.Partition, h hold) bool {
	e := l.seen[p]
	return e == nil || e.Revision() <= h.rev
}

// plan is which member is to have each partition, by what is seen. A partition that
// waits for a member counts as that one's. l.mu is held.
func (l *Leases) plan() table {
	var now table
	for p := range now {
		if v, ok := read(l.seen[messages.Partition(p)]); ok {
			now[p] = v.Member + v.Next // never both
		}
		if _, ours := l.held[messages.Partition(p)]; ours {
			now[p] = l.self
		}
	}
	return plan(now, l.takers)
}
