package lease

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// acquire takes a partition whose lease a session has seen to be free.
func (l *Leases) acquire(ctx context.Context, kv jetstream.KeyValue, session int, p messages.Partition, seen jetstream.KeyValueEntry) error {
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
		rev, err = kv.Create(ctx, key(p), b)
	} else {
		rev, err = kv.Update(ctx, key(p), b, seen.Revision())
	}
	if err != nil {
		return err
	}
	epoch := v.epoch(rev)
	if err := l.cfg.Owner.Acquired(p, epoch); err != nil {
		return err
	}
	l.mu.Lock()
	l.held[p] = hold{rev, epoch, session}
	l.mu.Unlock()
	l.cfg.Logger.Debug("a partition is this node's", "partition", p, "epoch", epoch)
	return nil
}

// take reaches for a partition in the background. l.mu is held.
func (l *Leases) take(ctx context.Context, p messages.Partition) (done chan struct{}) {
	seen, kv, session := l.seen[p], l.kv, l.session
	return l.work(p, session, func() { l.failed(ctx, p, l.acquire(ctx, kv, session, p, seen)) })
}

// failed says when what was not done about a partition is tried again, if err says
// that it was not.
func (l *Leases) failed(ctx context.Context, p messages.Partition, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	pause := backstop
	if errors.Is(err, jetstream.ErrKeyExists) { // it has changed; the watch will tell how
		pause = beaten
	} else {
		l.cfg.Logger.Warn("a partition could not be taken, or handed over; it will be tried again", "partition", p, "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.later[p] = time.Now().Add(pause)
}

// work does something about a partition in the background; meanwhile nothing else is
// done about it. Session is that of a taking, else zero. l.mu is held.
func (l *Leases) work(p messages.Partition, session int, do func()) (done chan struct{}) {
	done = make(chan struct{})
	l.busy[p] = doing{done, session}
	l.working.Go(func() {
		defer close(done)
		do()
		l.mu.Lock()
		delete(l.busy, p)
		l.tell()
		l.mu.Unlock()
		select {
		case l.again <- struct{}{}:
		default:
		}
	})
	return done
}
