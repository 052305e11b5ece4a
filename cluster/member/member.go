// Package member says which nodes are there: each keeps a key with a time to
// live in a NATS KV bucket, beaten by compare-and-set.
//
// # Guarantees
//
//   - A member that stops beating is gone for everybody after [TTL]; one whose
//     process or connection has ended, so that nobody answers its ping, usually
//     within half a second, or a second where there are several servers: each member
//     pings the next one in the order of their ids. Where that one is dead or frozen,
//     too, TTL it is. Who watches through a server that dies then hears of it within
//     three times TTL, and the time of an election if that server led JetStream: a watch
//     that tells not even of this node's own beats, or neither of a member's beats nor
//     of its end, is begun anew, and who is not there then has TTL to come back.
//   - A member whose key was taken away learns it at its next beat, or when its
//     connection is made anew; its trust ends then.
//   - A member trusts its own membership for less time than others do, by a clock
//     that nobody sets and that goes on while the process is stopped, and by the
//     clock on the wall, which goes on while the machine is. When trust
//     comes back it is complete only once somebody has said by [Members.Confirm]
//     that what follows from it was looked at anew.
//   - A node that only lost its connection joins again under the same id; what
//     it owned meanwhile is the leases' to say.
//   - A server that forgot all members, because it was restarted, makes nobody
//     dead, nor does a bucket to which nobody could write for a while, because its
//     servers elected a leader: those known before have TTL to come back.
package member

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
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
	// trust is how long one beat keeps up a member's trust in itself: it ends before
	// the key does, whose time begins later.
	trust = TTL - beat
	// overdue is how long after a beat without another the bucket is taken for away.
	overdue = 2 * beat
	// late is how long after a member's newest beat its end must have been told: the
	// server looks for expired keys about once a second.
	late = TTL + 2*beat
)

// Info is what a member tells of itself.
type Info struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	// Kinds are those of the agents that it runs, sorted.
	Kinds []string `json:"kinds,omitempty"`
	// Draining says that it gives its partitions away and takes none.
	Draining bool `json:"draining,omitempty"`
}

// same says that two tell the same of a member.
func (i Info) same(j Info) bool {
	return i.ID == j.ID && i.Host == j.Host && i.Version == j.Version && i.Started.Equal(j.Started) &&
		slices.Equal(i.Kinds, j.Kinds) && i.Draining == j.Draining
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
	nc     *nats.Conn
	js     jetstream.JetStream
	cfg    Config
	logger *slog.Logger
	ping   *nats.Subscription
	cancel context.CancelFunc
	done   sync.WaitGroup
	hurry  chan chan struct{} // asks for a beat now; closed when it was made
	lost   chan struct{}      // receives when the watch must begin anew

	mu       sync.Mutex
	self     Info
	kv       jetstream.KeyValue
	alive    map[string]entry
	absent   map[string]gone // with a bucket, and still believed in
	rev      uint64          // of our own key; 0: not there
	watchers map[chan struct{}]struct{}
	// trusted is until when this node trusts its membership. Each time that ran out
	// a new term begins with the next beat; confirmed is the newest that was confirmed.
	trusted time.Time
	// newest is when the newest beat succeeded, steady since when none was overdue.
	newest, steady time.Time
	// gap is when the newest beat succeeded that came late, and before when the one before it
	// did. Zero: there was none.
	gap, before     time.Time
	term, confirmed uint64
	doubted         bool // and said so
}

// entry is a member's key. A node deletes its own or another's; one that is purged has
// expired.
type entry struct {
	rev   uint64
	info  Info
	since time.Time // when it was first seen
	heard time.Time // when its newest beat was
}

// gone is a member whose key went with a bucket, believed in until a time.
type gone struct {
	info  Info
	until time.Time
}

// Join makes the node a member and begins to beat.
func Join(ctx context.Context, cfg Config) (*Members, error) {
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	m := &Members{
		self: cfg.Self, nc: cfg.Conn, js: js, cfg: cfg, logger: cfg.Logger, cancel: cancel, hurry: make(chan chan struct{}), lost: make(chan struct{}, 1),
		absent: make(map[string]gone), watchers: make(map[chan struct{}]struct{}),
	}
	if m.ping, err = m.nc.Subscribe(m.pingSubject(cfg.Self.ID), m.pinged); err != nil {
		cancel()
		return nil, err
	}
	watcher, err := m.open(ctx, run)
	if err != nil {
		cancel()
		return nil, errors.Join(err, m.ping.Unsubscribe())
	}
	m.Confirm(m.term) // nothing follows yet
	m.done.Go(func() { m.run(run, watcher) })
	m.done.Go(func() { m.beats(run) })
	m.done.Go(func() { m.probe(run) })
	return m, nil
}

func (m *Members) pingSubject(id string) string { return "_actor." + m.cfg.Root + ".ping." + id }

func (m *Members) pinged(msg *nats.Msg) {
	if (messages.Subjects{Root: m.cfg.Root}).AllowReply("", msg.Reply) == nil {
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
	return time.Now().Before(m.absent[id].until)
}

// List is what the living members tell of themselves, sorted by id.
func (m *Members) List() []Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	list := make([]Info, 0, len(m.alive)+len(m.absent))
	for _, e := range m.alive {
		list = append(list, e.info)
	}
	for id, g := range m.absent {
		if _, back := m.alive[id]; !back && now.Before(g.until) {
			list = append(list, g.info)
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Heard is when a member's newest heartbeat was heard, by this node's clock. Zero:
// it is not known.
func (m *Members) Heard(id string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alive[id].heard
}

// Self is this node's id.
func (m *Members) Self() string { return m.cfg.Self.ID }

// Watch gives a channel that receives after members came or went, after one told
// something else of itself, and after this node's trust in its membership came back,
// at least once for any number of those. stop ends that.
func (m *Members) Watch() (changes <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers[c] = struct{}{}
	return c, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, c)
	}
}

// tell says that something has changed. m.mu is not held.
func (m *Members) tell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Trusted says whether this node may act as a member: its newest beat is recent
// enough, and what follows from its membership was confirmed since it last was not.
func (m *Members) Trusted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.confirmed == m.term && m.inTime()
}

// There returns when what this node reads now was sent at the earliest: when its newest beat
// succeeded or, for a while after one that came late, the one before that, because what
// was held up meanwhile is still being read. It is by the clock on the wall, which counts while
// the machine is suspended.
func (m *Members) There() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.before.IsZero() && time.Since(m.gap) < heldUp {
		return m.before.Round(0)
	}
	return m.newest.Round(0)
}

// Steady reports whether this node was neither frozen nor cut off around a time: what it read
// then was sent then. It is known once a beat after that time has succeeded.
func (m *Members) Steady(at time.Time) (steady, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	steady = m.before.IsZero() || m.gap.Before(at.Add(-heldUp))
	return steady, m.newest.After(at)
}

// heldUp is how long after a node was cut off it may read what was held up meanwhile.
const heldUp = 5 * time.Second

// uneven is how long after a beat the next one comes late.
const uneven = beat + beat/3

// Trust is the term of this node's membership, and whether its newest beat is recent
// enough. Another term says that it was not, for a while.
func (m *Members) Trust() (term uint64, inTime bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.term, m.inTime()
}

// inTime says that the newest beat is recent enough. The clock on the wall counts,
// too: the other one stands while the machine is suspended. m.mu is held.
func (m *Members) inTime() bool {
	now := time.Now()
	return now.Before(m.trusted) && now.Round(0).Before(m.trusted.Round(0))
}

// Confirm says that what follows from the membership was looked at in the term.
func (m *Members) Confirm(term uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.confirmed = max(m.confirmed, term)
}

// Draining says whether this node gives its partitions away.
func (m *Members) Draining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self.Draining
}

// Drain tells the others that this node takes no partitions and gives its own away,
// or that it takes part again. When it returns without an error they have been told,
// or are told by a later beat.
func (m *Members) Drain(ctx context.Context, on bool) error {
	m.mu.Lock()
	m.self.Draining = on
	m.mu.Unlock()
	m.tell()
	made := make(chan struct{})
	select {
	case m.hurry <- made:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-made:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave takes the node out of the membership at once.
func (m *Members) Leave(ctx context.Context) {
	m.cancel()
	m.done.Wait()
	_ = m.ping.Unsubscribe()
	_ = m.bucket().Delete(ctx, prefix+m.Self()) // else it expires
}
