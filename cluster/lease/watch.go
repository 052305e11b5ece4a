package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

const (
	// backstop is how often everything is looked at even if nothing was heard.
	backstop = time.Second
	// patience bounds one attempt to take a partition.
	patience = 10 * time.Second
)

// session is one watch over the bucket.
type session struct {
	watcher jetstream.KeyWatcher
	created time.Time // of the bucket
	told    bool      // the watcher has told the past
	ticks   int
}

// open finds or makes the bucket and watches it. What was seen is forgotten;
// what is held is checked once the watcher has told the past.
func (l *Leases) open(ctx, run context.Context) (*session, error) {
	kv, err := l.bucket(ctx)
	if err != nil {
		return nil, err
	}
	created, err := createdAt(ctx, kv)
	if err != nil {
		return nil, err
	}
	watcher, err := kv.WatchAll(run)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kv, l.seen = kv, make(map[messages.Partition]jetstream.KeyValueEntry)
	return &session{watcher: watcher, created: created}, nil
}

// bucket never changes one that exists: its replicas are the administrator's.
func (l *Leases) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	name := l.cfg.Root + "_leases"
	kv, err := l.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = l.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, Description: "reprise: who owns which partition",
			Storage: jetstream.FileStorage, History: 1, Replicas: max(l.cfg.Replicas, 1),
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another node was first
			kv, err = l.js.KeyValue(ctx, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	have, err := kv.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	if have.TTL() != 0 {
		return nil, fmt.Errorf("bucket %s cannot be trusted: max_age is %v, set it to 0: leases would expire while their owners live", name, have.TTL())
	}
	return kv, nil
}

func createdAt(ctx context.Context, kv jetstream.KeyValue) (time.Time, error) {
	status, err := kv.Status(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if s, ok := status.(*jetstream.KeyValueBucketStatus); ok {
		return s.StreamInfo().Created, nil
	}
	return time.Time{}, nil
}

// run watches until ctx ends; a watch that was lost begins anew.
func (l *Leases) run(ctx context.Context, s *session) {
	defer close(l.done)
	changed := l.cfg.Conn.StatusChanged(nats.CONNECTED)
	defer l.cfg.Conn.RemoveStatusListener(changed)
	for {
		err := l.watch(ctx, s, changed)
		_ = s.watcher.Stop()
		if err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("the watch of the leases was lost; it begins anew", "error", err)
		}
		for ctx.Err() == nil {
			if s, err = l.open(ctx, ctx); err == nil {
				break
			}
			l.cfg.Logger.Warn("the leases cannot be watched; it is tried again", "error", err)
			select {
			case <-time.After(backstop):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

var (
	errClosed    = errors.New("the watch was closed")
	errReplaced  = errors.New("the bucket is not the one it was")
	errConnected = errors.New("the connection was made anew")
)

// watch works off what a session tells. Its error says why another is needed.
func (l *Leases) watch(ctx context.Context, s *session, connected <-chan nats.Status) error {
	ticker := time.NewTicker(backstop)
	defer ticker.Stop()
	for {
		select {
		case e, ok := <-s.watcher.Updates():
			switch {
			case !ok:
				return errClosed
			case e == nil:
				s.told = true
				l.reconcile()
			default:
				l.saw(e)
			}
			if len(s.watcher.Updates()) > 0 {
				continue // first everything that is known
			}
		case _, ok := <-connected:
			if !ok {
				connected = nil
				continue
			}
			return errConnected
		case p := <-l.cfg.Doubts:
			l.doubt(ctx, p)
		case <-l.cfg.Members.Changed():
		case <-ticker.C:
			if err := l.tick(ctx, s); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if s.told {
			l.take(ctx)
			l.settle()
		}
	}
}

func (l *Leases) settle() {
	select {
	case <-l.settled:
	default:
		close(l.settled)
	}
}

// tick pings those who keep us from a partition and, now and then, looks
// whether the bucket is still there.
func (l *Leases) tick(ctx context.Context, s *session) error {
	l.probe(ctx)
	if s.ticks++; s.ticks%5 != 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, backstop)
	defer cancel()
	created, err := createdAt(ctx, l.kv)
	if errors.Is(err, jetstream.ErrStreamNotFound) || err == nil && !created.Equal(s.created) {
		return errReplaced
	}
	return nil // a server that does not answer is no reason to give anything up
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
	l.mu.Unlock()
	if held && e.Revision() > h.rev {
		l.lose(p)
	}
}

// lose gives a partition up that is ours no more.
func (l *Leases) lose(p messages.Partition) {
	l.mu.Lock()
	delete(l.held, p)
	l.mu.Unlock()
	l.cfg.Logger.Warn("a partition was taken by another node, or its lease is gone", "partition", p)
	l.cfg.Owner.Lost(p)
}

// reconcile gives up what a new watch does not show to be ours.
func (l *Leases) reconcile() {
	for p := range messages.Partition(messages.Partitions) {
		l.mu.Lock()
		h, held := l.held[p]
		e := l.seen[p]
		l.mu.Unlock()
		if held && !l.ours(e, h) {
			l.lose(p)
		}
	}
}

func (l *Leases) ours(e jetstream.KeyValueEntry, h hold) bool {
	v, ok := read(e)
	return ok && v.Member == l.self && e.Revision() == h.rev
}

// doubt looks whether a partition is still ours: one of its agents has met a
// newer owner.
func (l *Leases) doubt(ctx context.Context, p messages.Partition) {
	l.mu.Lock()
	h, held := l.held[p]
	l.mu.Unlock()
	if !held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, backstop)
	defer cancel()
	e, err := l.kv.Get(ctx, key(p))
	if err == nil && !l.ours(e, h) || errors.Is(err, jetstream.ErrKeyNotFound) {
		l.mu.Lock()
		l.seen[p] = e
		l.mu.Unlock()
		l.lose(p)
	}
}
