// Package member says which nodes are there: each keeps a key with a time to
// live in a NATS KV bucket, beaten by compare-and-set.
//
// # Guarantees
//
//   - A member that stops beating is gone for everybody after [TTL], and after
//     one that is known to be dead (nobody answers its ping) within a second.
//   - A member whose key was taken away learns it at its next beat.
//   - A node that only lost its connection joins again under the same id; what
//     it owned meanwhile is the leases' to say.
package member

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TTL is how long a member that does not beat is still believed to be there.
const TTL = 3 * time.Second

const (
	beat   = TTL / 4
	prefix = "m."
)

// Info is what a member tells of itself.
type Info struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
}

// Members is this node's membership and its view of the others. Safe for
// concurrent use.
type Members struct {
	self   Info
	nc     *nats.Conn
	kv     jetstream.KeyValue
	root   string
	logger *slog.Logger
	ping   *nats.Subscription
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	alive   map[string]uint64 // id → revision
	rev     uint64            // of our own key; 0: not there
	changed chan struct{}
}

// Join makes the node a member and begins to beat.
func Join(ctx context.Context, nc *nats.Conn, root string, self Info, logger *slog.Logger) (*Members, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: root + "_members", Description: "reprise: nodes that are alive",
		TTL: TTL, LimitMarkerTTL: time.Second, Storage: jetstream.MemoryStorage, History: 1,
	})
	if err != nil {
		return nil, err
	}
	m := &Members{
		self: self, nc: nc, kv: kv, root: root, logger: logger, done: make(chan struct{}),
		alive: make(map[string]uint64), changed: make(chan struct{}, 1),
	}
	if m.ping, err = nc.Subscribe(m.pingSubject(self.ID), func(msg *nats.Msg) { _ = msg.Respond(nil) }); err != nil {
		return nil, err
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	watcher, err := kv.WatchAll(run)
	if err != nil {
		cancel()
		return nil, err
	}
	if err := m.initial(ctx, watcher); err != nil {
		cancel()
		return nil, err
	}
	go m.run(run, watcher)
	return m, nil
}

func (m *Members) pingSubject(id string) string { return "_actor." + m.root + ".ping." + id }

// initial reads the watcher's first values, until it says that they are told.
func (m *Members) initial(ctx context.Context, w jetstream.KeyWatcher) error {
	for {
		select {
		case e := <-w.Updates():
			if e == nil {
				return nil
			}
			m.update(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *Members) enter(ctx context.Context) error {
	value, err := json.Marshal(m.self)
	if err != nil {
		return err
	}
	rev, err := m.kv.Put(ctx, prefix+m.self.ID, value)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.rev = rev
	m.alive[m.self.ID] = rev
	m.mu.Unlock()
	return nil
}

func (m *Members) run(ctx context.Context, w jetstream.KeyWatcher) {
	defer close(m.done)
	defer func() { _ = w.Stop() }()
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
		case <-ticker.C:
			m.beat(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (m *Members) update(e jetstream.KeyValueEntry) {
	id := strings.TrimPrefix(e.Key(), prefix)
	m.mu.Lock()
	_, was := m.alive[id]
	if e.Operation() == jetstream.KeyValuePut {
		m.alive[id] = e.Revision()
	} else {
		delete(m.alive, id)
	}
	_, is := m.alive[id]
	m.mu.Unlock()
	if was != is {
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
}

// beat renews our key. A key that is gone, because the server was away or
// somebody took us for dead, is made anew: leases say what is still ours.
func (m *Members) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	m.mu.Lock()
	rev := m.rev
	m.mu.Unlock()
	value, err := json.Marshal(m.self)
	if err != nil {
		return
	}
	if rev, err = m.kv.Update(ctx, prefix+m.self.ID, value, rev); err == nil {
		m.mu.Lock()
		m.rev = rev
		m.mu.Unlock()
		return
	}
	if errors.Is(err, jetstream.ErrKeyExists) {
		if err := m.enter(ctx); err == nil {
			m.logger.Warn("this node's membership had lapsed; it has joined again", "member", m.self.ID)
		}
	}
}

// Alive says whether the member was seen within TTL.
func (m *Members) Alive(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.alive[id]
	return ok
}

// Self is this node's id.
func (m *Members) Self() string { return m.self.ID }

// Changed receives when members came or went since it was last received from.
func (m *Members) Changed() <-chan struct{} { return m.changed }

// Probe pings a member that the caller waits for, and removes its key if
// nobody listens there any more. A member that is only slow is left alone.
func (m *Members) Probe(ctx context.Context, id string) {
	m.mu.Lock()
	rev, ok := m.alive[id]
	m.mu.Unlock()
	if !ok || id == m.self.ID {
		return
	}
	for range 2 {
		_, err := m.nc.RequestWithContext(ctx, m.pingSubject(id), nil)
		if !errors.Is(err, nats.ErrNoResponders) {
			return
		}
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
	if err := m.kv.Delete(ctx, prefix+id, jetstream.LastRevision(rev)); err == nil {
		m.logger.Warn("a node is gone: nobody answers its ping", "member", id)
	}
}

// Leave takes the node out of the membership at once.
func (m *Members) Leave(ctx context.Context) {
	m.cancel()
	<-m.done
	_ = m.ping.Unsubscribe()
	_ = m.kv.Purge(ctx, prefix+m.self.ID)
}
