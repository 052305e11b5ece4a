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
//   - A server that forgot all members, because it was restarted, makes nobody
//     dead: those known before have TTL to come back.
package member

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
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

// Config says who joins what.
type Config struct {
	Conn *nats.Conn
	Root string
	// Replicas of the bucket, if it has to be made.
	Replicas int
	Self     Info
	Logger   *slog.Logger
}

// Members is this node's membership and its view of the others. Safe for
// concurrent use.
type Members struct {
	self   Info
	nc     *nats.Conn
	js     jetstream.JetStream
	cfg    Config
	logger *slog.Logger
	ping   *nats.Subscription
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	kv      jetstream.KeyValue
	alive   map[string]uint64    // id → revision
	absent  map[string]time.Time // gone with a bucket, and until when still believed in
	rev     uint64               // of our own key; 0: not there
	changed chan struct{}
}

// Join makes the node a member and begins to beat.
func Join(ctx context.Context, cfg Config) (*Members, error) {
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	m := &Members{
		self: cfg.Self, nc: cfg.Conn, js: js, cfg: cfg, logger: cfg.Logger, cancel: cancel, done: make(chan struct{}),
		absent: make(map[string]time.Time), changed: make(chan struct{}, 1),
	}
	if m.ping, err = m.nc.Subscribe(m.pingSubject(m.self.ID), m.pinged); err != nil {
		cancel()
		return nil, err
	}
	watcher, err := m.open(ctx, run)
	if err != nil {
		cancel()
		return nil, errors.Join(err, m.ping.Unsubscribe())
	}
	go m.run(run, watcher)
	return m, nil
}

func (m *Members) pingSubject(id string) string { return "_actor." + m.cfg.Root + ".ping." + id }

func (m *Members) pinged(msg *nats.Msg) {
	if (messages.Subjects{Root: m.cfg.Root}).AllowReply(msg.Reply) == nil {
		_ = msg.Respond(nil)
	}
}

func (m *Members) bucket() jetstream.KeyValue {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kv
}

// Alive says whether the member was seen within TTL.
func (m *Members) Alive(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.alive[id]; ok {
		return true
	}
	return time.Now().Before(m.absent[id])
}

// Self is this node's id.
func (m *Members) Self() string { return m.self.ID }

// Changed receives when members came or went since it was last received from.
func (m *Members) Changed() <-chan struct{} { return m.changed }

// Probe pings a member that the caller waits for, and removes its key if
// nobody listens there any more. A member that is only slow is left alone.
func (m *Members) Probe(ctx context.Context, id string) {
	m.mu.Lock()
	rev, known := m.alive[id]
	_, absent := m.absent[id]
	m.mu.Unlock()
	if !known && !absent || id == m.self.ID {
		return
	}
	for range 2 {
		_, err := m.nc.RequestWithContext(ctx, m.pingSubject(id), nil)
		if !errors.Is(err, nats.ErrNoResponders) {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
	if absent {
		m.mu.Lock()
		delete(m.absent, id)
		m.mu.Unlock()
		m.tell()
	}
	if !known {
		return
	}
	if err := m.bucket().Delete(ctx, prefix+id, jetstream.LastRevision(rev)); err == nil {
		m.logger.Warn("a node is gone: nobody answers its ping", "member", id)
	}
}

// Leave takes the node out of the membership at once.
func (m *Members) Leave(ctx context.Context) {
	m.cancel()
	<-m.done
	_ = m.ping.Unsubscribe()
	_ = m.bucket().Purge(ctx, prefix+m.self.ID) // else it expires
}
