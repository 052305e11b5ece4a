package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
)

// open finds or makes the bucket, enters it, and watches it until the past is
// told. The bucket is in memory: a server that comes back has forgotten it.
func (m *Members) open(ctx, run context.Context) (jetstream.KeyWatcher, error) {
	kv, err := m.findBucket(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.kv = kv
	m.mu.Unlock()
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	w, err := kv.WatchAll(run)
	if err != nil {
		return nil, err
	}
	alive, err := initial(ctx, w)
	if err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	m.mu.Lock()
	until := time.Now().Add(TTL)
	for id, e := range m.alive {
		if _, back := alive[id]; !back {
			m.absent[id] = gone{e.info, until}
		}
	}
	m.alive = alive
	m.mu.Unlock()
	m.tell()
	return w, nil
}

// findBucket never changes one that exists: its replicas are the
// administrator's.
func (m *Members) findBucket(ctx context.Context) (jetstream.KeyValue, error) {
	name := m.cfg.Root + "_members"
	kv, err := m.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = m.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, Description: "reprise: nodes that are alive", Replicas: max(m.cfg.Replicas, 1),
			TTL: TTL, LimitMarkerTTL: time.Second, Storage: jetstream.MemoryStorage, History: 1,
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another node was first
			kv, err = m.js.KeyValue(ctx, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	return kv, nil
}

// initial reads the watcher's first values, until it says that they are told.
func initial(ctx context.Context, w jetstream.KeyWatcher) (map[string]entry, error) {
	alive := make(map[string]entry)
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return nil, errLost
			}
			if e == nil {
				return alive, nil
			}
			apply(alive, e)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// apply takes notice of a member's key. It says whether anybody came or went, or
// tells something else of itself now.
func apply(alive map[string]entry, e jetstream.KeyValueEntry) (id string, changed bool) {
	id = strings.TrimPrefix(e.Key(), prefix)
	before, known := alive[id]
	since := before.since
	if !known {
		since = time.Now()
	}
	if e.Operation() != jetstream.KeyValuePut {
		delete(alive, id)
		return id, known
	}
	info := Info{ID: id}
	_ = json.Unmarshal(e.Value(), &info) // one that cannot be read is there all the same
	info.ID = id
	alive[id] = entry{e.Revision(), info, since, time.Now()}
	return id, !known || !info.same(before.info)
}

// enter writes our key. If it was not there all the time the membership has lapsed.
func (m *Members) enter(ctx context.Context) error {
	value, began, err := m.value()
	if err != nil {
		return err
	}
	m.mu.Lock()
	kv, rev := m.kv, m.rev
	m.mu.Unlock()
	if rev == 0 {
		return m.enterAnew(ctx, kv, value, began)
	}
	rev, err = kv.Update(ctx, prefix+m.Self(), value, rev)
	switch {
	case err == nil:
		m.beaten(rev, began)
		return nil
	case !errors.Is(err, jetstream.ErrKeyExists):
		return err
	case m.landed(ctx, kv, value, began):
		return nil
	}
	return m.rejoin(ctx, kv, value, began)
}

// rejoin ends the trust in a membership that somebody has ended, and makes our key
// anew.
func (m *Members) rejoin(ctx context.Context, kv jetstream.KeyValue, value []byte, began time.Time) error {
	m.mu.Lock()
	m.trusted = time.Time{}
	m.mu.Unlock()
	err := m.enterAnew(ctx, kv, value, began)
	if err == nil {
		m.logger.Warn("this node's membership had lapsed; it has joined again", "member", m.Self())
	}
	return err
}

// enterAnew writes our key where there is none.
func (m *Members) enterAnew(ctx context.Context, kv jetstream.KeyValue, value []byte, began time.Time) error {
	rev, err := kv.Put(ctx, prefix+m.Self(), value)
	if err == nil {
		m.beaten(rev, began)
	}
	return err
}

// value is what our key says, and the time from which a beat with it counts.
func (m *Members) value() ([]byte, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, err := json.Marshal(m.self)
	return b, time.Now(), err
}

// beaten notes a beat that was begun at a time and has succeeded.
func (m *Members) beaten(rev uint64, began time.Time) {
	m.mu.Lock()
	m.rev = rev
	again := !m.inTime()
	if again {
		m.term++
	}
	m.trusted = began.Add(trust)
	now := time.Now()
	if now.Sub(m.newest) > overdue {
		m.steady = now
		for id, g := range m.absent {
			m.absent[id] = gone{g.info, now.Add(TTL)}
		}
	}
	if now.Sub(m.newest) > uneven {
		if now.Sub(m.gap) > heldUp || m.before.IsZero() {
			m.before = m.newest
		}
		m.gap = now
	}
	m.newest = now
	m.mu.Unlock()
	if again {
		m.tell()
	}
}

var errLost = errors.New("the watch over the members was lost")

// run beats and watches until ctx ends; a watch that was lost begins anew.
func (m *Members) run(ctx context.Context, w jetstream.KeyWatcher) {
	connected := m.nc.StatusChanged(nats.CONNECTED)
	defer m.nc.RemoveStatusListener(connected)
	for {
		m.watch(ctx, w, connected)
		go func(old jetstream.KeyWatcher) { _ = old.Stop() }(w) // where its server has died that waits for seconds
		for ctx.Err() == nil {
			within, cancel := context.WithTimeout(ctx, TTL)
			again, err := m.open(within, ctx)
			cancel()
			if err == nil {
				w = again
				select {
				case <-m.lost: // that was before
				default:
				}
				break
			}
			m.logger.Warn("this node cannot join the others; it is tried again", "error", err)
			select {
			case <-time.After(beat):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (m *Members) watch(ctx context.Context, w jetstream.KeyWatcher, connected <-chan nats.Status) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return
			}
			if e != nil {
				m.update(e)
			}
		case _, ok := <-connected:
			if ok {
				return
			}
			connected = nil
		case <-m.lost:
			return
		case <-ticker.C:
			m.doubt()
			m.forget()
			if m.isDeaf() {
				m.logger.Warn("the watch over the members does not tell all; it begins anew", "member", m.Self())
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// isDeaf says that the watch has not told what it must have. Its consumer has one copy,
// in memory: where that dies with its server the library waits ten seconds, and the end
// of a key is stored for one. This node's beats succeed, and the watch is silent about
// them; or a key should have been renewed or have ended, and nothing was told of it.
func (m *Members) isDeaf() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isOverdue() {
		return false
	}
	if time.Since(m.alive[m.cfg.Self.ID].heard) > TTL {
		return true
	}
	if time.Since(m.steady) < late {
		return false // nobody could beat a while ago
	}
	for _, e := range m.alive {
		if time.Since(e.heard) > late {
			return true
		}
	}
	return false
}

// beats renews our key until ctx ends, beside the watch: what others tell must not
// wait for it.
func (m *Members) beats(ctx context.Context) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		var made chan struct{}
		select {
		case <-ticker.C:
		case made = <-m.hurry:
		case <-ctx.Done():
			return
		}
		m.doubt()
		if !m.beat(ctx) {
			select {
			case m.lost <- struct{}{}:
			default:
			}
		}
		if made != nil {
			close(made)
		}
	}
}

func (m *Members) update(e jetstream.KeyValueEntry) {
	m.mu.Lock()
	was, known := m.alive[strings.TrimPrefix(e.Key(), prefix)]
	id, changed := apply(m.alive, e)
	_, missed := m.absent[id]
	expired := e.Operation() == jetstream.KeyValuePurge
	if known || !expired { // else it is what ended before this watch began
		delete(m.absent, id)
		changed = changed || missed
	}
	if until := m.believed(); known && expired && time.Now().Before(until) {
		m.absent[id] = gone{was.info, until}
		changed = false
	}
	m.mu.Unlock()
	if changed {
		m.tell()
	}
}

// believed is until when those whose key has expired are still believed in: nobody
// could renew a key while this node could not. m.mu is held.
func (m *Members) believed() time.Time {
	if m.isOverdue() {
		return time.Now().Add(TTL)
	}
	return m.steady.Add(TTL)
}

// isOverdue says that this node cannot renew its own key now. m.mu is held.
func (m *Members) isOverdue() bool { return time.Since(m.newest) > overdue }

// forget gives up those who did not come back in time.
func (m *Members) forget() {
	m.mu.Lock()
	gone := false
	for id, g := range m.absent {
		if !m.isOverdue() && !time.Now().Before(g.until) {
			delete(m.absent, id)
			gone = true
		}
	}
	m.mu.Unlock()
	if gone {
		m.tell()
	}
}

// beat renews our key. A key that is gone, because the server was away or
// somebody took us for dead, is made anew: leases say what is still ours. It is
// false if the watch must begin anew: the bucket is gone, or may be another one,
// whose revisions begin again where the old watch no longer looks.
func (m *Members) beat(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*beat) // a slow answer is better than none
	defer cancel()
	m.mu.Lock()
	kv, rev := m.kv, m.rev
	m.mu.Unlock()
	value, began, err := m.value()
	if err != nil {
		return true
	}
	rev, err = kv.Update(ctx, prefix+m.Self(), value, rev)
	switch {
	case err == nil:
		m.beaten(rev, began)
	case errors.Is(err, jetstream.ErrKeyExists):
		if m.landed(ctx, kv, value, began) {
			return true
		}
		_ = m.rejoin(ctx, kv, value, began) // else the next one does, or whoever begins the watch anew
		return false
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return false
	}
	return true
}

// landed beats once more if the key is there: nobody but this node writes it, so an
// earlier beat without an answer has come after all, or the one beside this.
func (m *Members) landed(ctx context.Context, kv jetstream.KeyValue, value []byte, began time.Time) bool {
	for range 3 { // each of two may be in the other's way
		rev, err := natslog.Revision(ctx, m.nc, kv.Bucket(), prefix+m.Self())
		if err != nil || rev == 0 {
			return false
		}
		rev, err = kv.Update(ctx, prefix+m.Self(), value, rev)
		if err == nil {
			m.beaten(rev, began)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err == nil
		}
	}
	return false
}

// doubt says once that the trust in the membership has run out.
func (m *Members) doubt() {
	m.mu.Lock()
	said := m.doubted
	m.doubted = !m.inTime()
	doubted := m.doubted
	m.mu.Unlock()
	if doubted && !said {
		m.logger.Warn("this node's membership was not renewed in time: it acts as nobody's owner until it is", "member", m.Self())
	}
}
