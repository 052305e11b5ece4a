package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
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
	number  int
	watcher jetstream.KeyWatcher
	created time.Time // of the bucket
	told    bool      // the watcher has told the past
	newest  uint64    // the highest revision that it has told, or that was there when it began
	behind  bool      // the bucket had more at the last look, and nothing was told since
	ticks   int
	term    uint64 // of the membership when it began
}

// open finds or makes the bucket and watches it. What was seen is forgotten;
// what is held is checked once the watcher has told the past.
func (l *Leases) open(ctx, run context.Context) (*session, error) {
	term, _ := l.cfg.Members.Trust()
	kv, err := l.bucket(ctx)
	if err != nil {
		return nil, err
	}
	created, newest, err := state(ctx, kv)
	if err != nil {
		return nil, err
	}
	watcher, err := kv.WatchAll(run)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session++
	l.kv, l.seen = kv, make(map[messages.Partition]jetstream.KeyValueEntry)
	return &session{number: l.session, watcher: watcher, created: created, newest: newest, term: term}, nil
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

// state is when the bucket was made, and the newest revision that was ever written.
func state(ctx context.Context, kv jetstream.KeyValue) (created time.Time, newest uint64, err error) {
	status, err := kv.Status(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}
	if s, ok := status.(*jetstream.KeyValueBucketStatus); ok {
		created, newest = s.StreamInfo().Created, s.StreamInfo().State.LastSeq
	}
	return created, newest, nil
}

// run watches until ctx ends; a watch that was lost begins anew.
func (l *Leases) run(ctx context.Context, s *session) {
	defer close(l.done)
	changed := l.cfg.Conn.StatusChanged(nats.CONNECTED)
	defer l.cfg.Conn.RemoveStatusListener(changed)
	for {
		err := l.watch(ctx, s, changed)
		go func(old jetstream.KeyWatcher) { _ = old.Stop() }(s.watcher) // where its server has died that waits for seconds
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
	errDeaf      = errors.New("it shows nothing though leases have changed; if this lasts, the newest message in the stream of bucket _leases is damaged: remove that stream, it is made again")
	errClosed    = errors.New("the watch was closed")
	errReplaced  = errors.New("the bucket is not the one it was")
	errConnected = errors.New("the connection was made anew")
	errLapsed    = errors.New("this node's membership had lapsed")
)

// watch works off what a session tells. Its error says why another is needed.
func (l *Leases) watch(ctx context.Context, s *session, connected <-chan nats.Status) error {
	members, stop := l.cfg.Members.Watch()
	defer stop()
	ticker := time.NewTicker(backstop)
	defer ticker.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case e, ok := <-s.watcher.Updates():
			switch {
			case !ok:
				return errClosed
			case e == nil:
				s.told = true
				l.reconcile(s)
			default:
				s.newest, s.behind = max(s.newest, e.Revision()), false
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
		case <-members:
		case <-l.again:
		case <-due.C:
		case <-ticker.C:
			if err := l.tick(ctx, s); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if s.told {
			wait, err := l.look(ctx, s)
			if err != nil {
				return err
			}
			due.Reset(wait)
		}
	}
}

// tick looks, now and then, whether the bucket is still there, and whether the watch
// has told what was written. The consumer of a watch has one copy: where that dies with
// its server the library waits ten seconds.
func (l *Leases) tick(ctx context.Context, s *session) error {
	if s.ticks++; s.ticks%2 != 0 && !s.behind {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, backstop)
	defer cancel()
	created, newest, err := state(ctx, l.kv)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), err == nil && !created.Equal(s.created):
		return errReplaced
	case err != nil:
		return nil // a server that does not answer is no reason to give anything up
	}
	again := s.behind
	if s.behind = newest > s.newest || !s.told; s.behind && again {
		return errDeaf
	}
	return nil
}

func key(p messages.Partition) string { return "p." + p.String() }

func (l *Leases) saw(e jetstream.KeyValueEntry) {
	var p messages.Partition
	if _, err := fmt.Sscanf(e.Key(), "p.%d", &p); err != nil || p >= messages.Partitions {
		return
	}
	l.mu.Lock()
	if w, ok := l.seen[p].(written); ok && e.Revision() < w.rev {
		l.mu.Unlock()
		return // it is old
	}
	l.seen[p] = e
	l.tell()
	if h, held := l.held[p]; held && e.Revision() > h.rev && l.giving[p] != nil {
		l.giving[p]() // it is gone already
	}
	l.mu.Unlock()
	if l.cfg.Moved != nil {
		l.cfg.Moved(p)
	}
}

// reconcile gives up what a new watch does not show to be ours, in the background.
// When nothing is left that an earlier watch has told, this node may act for the
// others.
func (l *Leases) reconcile(s *session) {
	l.working.Go(func() {
		for {
			l.mu.Lock()
			if l.session != s.number { // which does the same when it is told
				l.mu.Unlock()
				return
			}
			unsure := append(l.lose(l.isGone), l.unsure()...)
			l.mu.Unlock()
			if len(unsure) == 0 {
				l.cfg.Members.Confirm(s.term)
				return
			}
			for _, done := range unsure {
				<-done
			}
		}
	})
}

// unsure are the ends of what was begun before the newest session, and may concern
// partitions that are another's by now: those that are being taken, and those that are
// given up. What is handed over and is gone already is hurried. l.mu is held.
func (l *Leases) unsure() (done []chan struct{}) {
	for p, is := range l.busy {
		if is.session == l.session {
			continue // it relies on what this one tells
		}
		if h, held := l.held[p]; held {
			if !l.isGone(p, h) {
				continue
			}
			if taken := l.giving[p]; taken != nil {
				taken()
			}
		}
		done = append(done, is.done)
	}
	return done
}

// isGone says that what is seen does not show a partition to be ours any more. What
// an earlier session has told of must be there as it was; in this one the watch may
// be behind what we have just written. l.mu is held.
func (l *Leases) isGone(p messages.Partition, h hold) bool {
	e := l.seen[p]
	if h.session == l.session {
		return e != nil && e.Revision() > h.rev
	}
	if v, ok := read(e); !ok || v.Member != l.self || e.Revision() != h.rev {
		return true
	}
	l.held[p] = hold{h.rev, h.epoch, l.session}
	return false
}

// lose begins to give up those partitions that are ours no more, and says so once.
// What is being handed over is left to that. l.mu is held.
func (l *Leases) lose(isLost func(messages.Partition, hold) bool) (done []chan struct{}) {
	var lost []string
	for p, h := range l.held {
		if _, busy := l.busy[p]; busy || !isLost(p, h) {
			continue
		}
		delete(l.held, p)
		lost = append(lost, withEpoch(p, h.epoch))
		done = append(done, l.work(p, 0, func() { l.cfg.Owner.Lost(p) }))
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		l.cfg.Logger.Warn("this node has stepped down: partitions were taken by other nodes, or their leases are gone; what it still does there is refused",
			"member", l.self, "partitions@epochs", strings.Join(lost, " "))
	}
	return done
}

func withEpoch(p messages.Partition, epoch messages.Epoch) string {
	return fmt.Sprintf("%s@%d", p, epoch)
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
	gone := errors.Is(err, jetstream.ErrKeyNotFound) && l.isMissing(ctx, p)
	if !gone && (err != nil || e.Revision() <= h.rev) { // or what was read is old
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[p] = e; gone {
		l.lose(func(q messages.Partition, is hold) bool { return q == p && is == h })
	}
}

// isMissing asks the leader whether a lease is gone: another server may not have heard
// of it yet.
func (l *Leases) isMissing(ctx context.Context, p messages.Partition) bool {
	rev, err := natslog.Revision(ctx, l.cfg.Conn, l.cfg.Root+"_leases", key(p))
	return err == nil && rev == 0
}
