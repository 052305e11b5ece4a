package lease

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// probe pings the owners that keep us from a partition.
func (l *Leases) probe(ctx context.Context) {
	others := make(map[string]bool)
	l.mu.Lock()
	for _, e := range l.seen {
		if v, ok := read(e); ok && v.Member != l.self {
			others[v.Member] = true
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, backstop/2)
	defer cancel()
	for id := range others {
		l.cfg.Members.Probe(ctx, id)
	}
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
		if ours || leased && v.Member != l.self && l.cfg.Members.Alive(v.Member) {
			continue
		}
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if err := l.acquire(ctx, p, seen); err != nil && ctx.Err() == nil && !errors.Is(err, jetstream.ErrKeyExists) {
				l.cfg.Logger.Warn("a partition could not be taken; it will be tried again", "partition", p, "error", err)
			}
		})
	}
}

func (l *Leases) acquire(ctx context.Context, p messages.Partition, seen jetstream.KeyValueEntry) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	highest, err := l.cfg.Owner.Prepare(ctx, p)
	if err != nil {
		return err
	}
	before, leased := read(seen)
	v := value{Member: l.self, Floor: highest + 1}
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
	epoch := v.epoch(rev)
	if err := l.cfg.Owner.Acquired(p, epoch); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[p] = hold{rev, epoch}
	return nil
}
