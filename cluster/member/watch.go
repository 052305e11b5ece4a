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
	for id := range m.alive {
		if _, back := alive[id]; !back {
			m.absent[id] = until
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
func initial(ctx context.Context, w jetstream.KeyWatcher) (map[string]uint64, error) {
	alive := make(map[string]uint64)
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

func apply(alive map[string]uint64, e jetstream.KeyValueEntry) (id string) {
	id = strings.TrimPrefix(e.Key(), prefix)
	if e.Operation() == jetstream.KeyValuePut {
		alive[id] = e.Revision()
	} else {
		delete(alive, id)
	}
	return id
}

// enter writes our key.
func (m *Members) enter(ctx context.Context) error {
	value, err := json.Marshal(m.self)
	if err != nil {
		return err
	}
	rev, err := m.bucket().Put(ctx, prefix+m.self.ID, value)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.rev = rev
	m.mu.Unlock()
	return nil
}

var errLost = errors.New("the watch over the members was lost")

// run beats and watches until ctx ends; a watch that was lost begins anew.
func (m *Members) run(ctx context.Context, w jetstream.KeyWatcher) {
	defer close(m.done)
	connected := m.nc.StatusChanged(nats.CONNECTED)
	defer m.nc.RemoveStatusListener(connected)
	for {
		m.watch(ctx, w, connected)
		_ = w.Stop()
		for ctx.Err() == nil {
			within, cancel := context.WithTimeout(ctx, TTL)
			again, err := m.open(within, ctx)
			cancel()
			if err == nil {
				w = again
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
		case <-ticker.C:
			m.forget()
			if !m.beat(ctx) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (m *Members) update(e jetstream.KeyValueEntry) {
	m.mu.Lock()
	before := len(m.alive)
	delete(m.absent, apply(m.alive, e))
	after := len(m.alive)
	m.mu.Unlock()
	if before != after {
		m.tell()
	}
}

// forget gives up those who did not come back in time.
func (m *Members) forget() {
	m.mu.Lock()
	gone := false
	for id, until := range m.absent {
		if !time.Now().Before(until) {
			delete(m.absent, id)
			gone = true
		}
	}
	m.mu.Unlock()
	if gone {
		m.tell()
	}
}

// tell says that members came or went.
func (m *Members) tell() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// beat renews our key. A key that is gone, because the server was away or
// somebody took us for dead, is made anew: leases say what is still ours. It is
// false if the bucket itself is gone.
func (m *Members) beat(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	m.mu.Lock()
	kv, rev := m.kv, m.rev
	m.mu.Unlock()
	value, err := json.Marshal(m.self)
	if err != nil {
		return true
	}
	rev, err = kv.Update(ctx, prefix+m.self.ID, value, rev)
	switch {
	case err == nil:
		m.mu.Lock()
		m.rev = rev
		m.mu.Unlock()
	case errors.Is(err, jetstream.ErrKeyExists):
		if err := m.enter(ctx); err == nil {
			m.logger.Warn("this node's membership had lapsed; it has joined again", "member", m.self.ID)
		}
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return false
	}
	return true
}
