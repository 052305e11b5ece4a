package member_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/member"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// world is a server of a test's own and the members there.
type world struct{ *embeddedtest.World }

func newWorld(t *testing.T) world { return world{embeddedtest.New(t)} }

// join makes a member; its connection is what a kill of its process ends.
func (w world) join(id string) (*member.Members, *nats.Conn) {
	w.T.Helper()
	nc := w.Connect()
	return w.joinOver(id, nc), nc
}

func (w world) joinOver(id string, nc *nats.Conn) *member.Members {
	w.T.Helper()
	m, err := member.Join(w.Ctx, member.Config{
		Conn: nc, Root: "reprise", Self: member.Info{ID: id, Host: "here", Started: time.Now(), Kinds: []string{id}},
		Logger: w.Log.Logger(),
	})
	w.OK(err)
	w.T.Cleanup(func() { m.Leave(w.Ctx) })
	return m
}

// until waits for what members tell, told each time that something changed.
func (w world) until(m *member.Members, what string, is func() bool) {
	w.T.Helper()
	changes, stop := m.Watch()
	defer stop()
	for !is() {
		select {
		case <-changes:
		case <-w.Ctx.Done():
			w.T.Fatalf("%s: it did not happen; logged:\n%s", what, w.Log)
		}
	}
}

func ids(m *member.Members) (list []string) {
	for _, i := range m.List() {
		list = append(list, i.ID)
	}
	return list
}

func (w world) sees(m *member.Members, want ...string) {
	w.T.Helper()
	w.until(m, fmt.Sprintf("the members are %v", want), func() bool { return slices.Equal(ids(m), want) })
}

// trusts waits until a member trusts itself, once what follows from its membership was
// looked at, and gives the term and the time.
func (w world) trusts(m *member.Members) (term uint64, at time.Time) {
	w.T.Helper()
	w.Eventually("it trusts itself after the look", func() bool {
		term, _ = m.Trust()
		m.Confirm(term)
		return m.Trusted()
	})
	return term, time.Now()
}

// kept says that a member has trusted itself since it did in a term. It is false if it could
// not beat meanwhile, as on a machine that stood still; else it must have.
func (w world) kept(m *member.Members, term uint64, since time.Time) bool {
	w.T.Helper()
	is, _ := m.Trust()
	trusted := m.Trusted()
	if is == term && trusted {
		return true
	}
	if time.Since(m.There()) < time.Since(since) && !strings.Contains(w.Log.String(), "had lapsed") {
		w.T.Fatalf("term %d after %d, trusted %v; logged:\n%s", is, term, trusted, w.Log)
	}
	return false
}

// Members come, tell of themselves, leave and die.
func TestMembers(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, _ := w.join("a")
	w.sees(a, "a")
	c, _ := w.join("c")
	b, dies := w.join("b")
	for _, m := range []*member.Members{a, b, c} {
		w.sees(m, "a", "b", "c")
	}
	if list := a.List(); list[1].Kinds[0] != "b" || list[1].Draining || list[1].Host != "here" {
		t.Errorf("b tells %+v", list[1])
	}
	tells := func(draining bool) func() bool {
		return func() bool {
			return slices.ContainsFunc(a.List(), func(i member.Info) bool { return i.ID == "c" && i.Draining == draining })
		}
	}
	w.OK(c.Drain(w.Ctx, true)) // the set of ids stays the same
	w.until(a, "c drains", tells(true))
	w.OK(c.Drain(w.Ctx, false))
	w.until(a, "c takes part again", tells(false))
	dies.Close() // as a killed process does
	w.sees(a, "a", "c")
	if a.Alive("b") || !a.Alive("c") {
		t.Error("the dead one lives")
	}
	for !strings.Contains(w.Log.String(), `nobody answers its ping" member=b`) { // where a machine stood still its key has expired before
		_, dies = w.join("b")
		w.sees(a, "a", "b", "c")
		dies.Close()
		w.sees(a, "a", "c")
	}
	c.Leave(w.Ctx)
	w.sees(a, "a")
}

// A member whose key others have removed does not trust itself until what follows
// from its membership was looked at anew.
func TestTrust(t *testing.T) {
	w := newWorld(t)
	m, nc := w.join("a")
	term, inTime := m.Trust()
	if (!m.Trusted() || !inTime) && !strings.Contains(w.Log.String(), "had lapsed") {
		t.Fatal("it does not trust itself at first")
	}
	js, err := jetstream.New(nc)
	w.OK(err)
	kv, err := js.KeyValue(w.Ctx, "reprise_members")
	w.OK(err)
	w.OK(kv.Delete(w.Ctx, "m.a"))
	w.until(m, "it has joined again", func() bool {
		next, inTime := m.Trust()
		return next != term && inTime
	})
	if m.Trusted() {
		t.Error("it trusts itself though nobody has looked")
	}
	if m.Confirm(term); m.Trusted() {
		t.Error("a look in the term before counts")
	}
	w.trusts(m)
	w.OK(w.Srv.Shutdown()) // nothing renews it now
	w.Eventually("its trust ends", func() bool { return !m.Trusted() })
	w.Eventually("it says so", func() bool { return strings.Contains(w.Log.String(), "acts as nobody's owner") })
}

// A bucket that was removed and made again by another node, between two beats of
// this one, begins again with small revisions, for which the old watch does not look.
func TestTheBucketIsAnotherOne(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	js, err := jetstream.New(w.Connect())
	w.OK(err)
	_, err = js.CreateKeyValue(w.Ctx, jetstream.KeyValueConfig{
		Bucket: "reprise_members", TTL: member.TTL, LimitMarkerTTL: time.Second, Storage: jetstream.MemoryStorage, History: 1,
	})
	w.OK(err)
	s, err := js.Stream(w.Ctx, "KV_reprise_members")
	w.OK(err)
	made := func(first uint64) {
		t.Helper()
		cfg := s.CachedInfo().Config
		cfg.FirstSeq = first
		for {
			if err := js.DeleteStream(w.Ctx, cfg.Name); !errors.Is(err, jetstream.ErrStreamNotFound) {
				w.OK(err)
			}
			_, err := js.CreateStream(w.Ctx, cfg)
			if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // else a beat came in between, and made it
				w.OK(err)
				return
			}
		}
	}
	made(1_000_000) // as after a week
	a, _ := w.join("a")
	w.sees(a, "a")
	made(1)
	b, dies := w.join("b")
	w.sees(a, "a", "b")
	w.sees(b, "a", "b")
	dies.Close()
	w.sees(a, "a")
}

// written is a member that consists of a key and of answers to pings.
func (w world) written(id string) (kv jetstream.KeyValue, bucket jetstream.Stream) {
	w.T.Helper()
	nc := w.Connect()
	_, err := nc.Subscribe("_actor.reprise.ping."+id, func(m *nats.Msg) { _ = m.Respond(nil) })
	w.OK(err)
	js, err := jetstream.New(nc)
	w.OK(err)
	kv, err = js.KeyValue(w.Ctx, "reprise_members")
	w.OK(err)
	bucket, err = js.Stream(w.Ctx, "KV_reprise_members")
	w.OK(err)
	_, err = kv.Put(w.Ctx, "m."+id, []byte("{}"))
	w.OK(err)
	return kv, bucket
}

// The consumer of a watch is gone, as with the server that it was on, and a node dies
// at once: what tells of its end is gone before the library makes the consumer anew.
func TestTheWatchDiesWithTheNode(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, _ := w.join("a")
	for kept := false; !kept; {
		kv, bucket := w.written("b")
		w.sees(a, "a", "b")
		term, began := w.trusts(a)
		names := bucket.ConsumerNames(w.Ctx)
		for name := range names.Name() {
			if err := bucket.DeleteConsumer(w.Ctx, name); !errors.Is(err, jetstream.ErrConsumerNotFound) { // of a watch that has begun anew
				w.OK(err)
			}
		}
		w.OK(names.Err())
		w.OK(kv.Delete(w.Ctx, "m.b"))
		w.sees(a, "a")
		kept = w.kept(a, term, began) // its own beats went on
	}
	c, _ := w.join("c") // and the new watch tells
	w.sees(a, "a", "c")
	w.sees(c, "a", "c")
}

// A member's key was purged from the stream, of which a watch is told nothing.
func TestTheEndIsNotTold(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a, _ := w.join("a")
	_, bucket := w.written("b")
	w.sees(a, "a", "b")
	w.OK(bucket.Purge(w.Ctx, jetstream.WithPurgeSubject("$KV.reprise_members.m.b")))
	w.sees(a, "a")
}

// mute is the way to a server that keeps what is sent for as long as it is told to.
type mute struct {
	net.Conn
	mu   sync.Mutex
	on   bool
	kept []byte
}

// Dial makes the connection; it is called once.
func (m *mute) Dial(network, address string) (c net.Conn, err error) {
	m.Conn, err = net.Dial(network, address)
	return m, err
}

// Write sends b, or keeps it.
func (m *mute) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on {
		m.kept = append(m.kept, b...)
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// set keeps what is sent from now on, or sends what was kept.
func (m *mute) set(on bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on = on; on {
		return nil
	}
	_, err := m.Conn.Write(m.kept)
	m.kept = nil
	return err
}

// A member's key expires while this node cannot renew its own either, as after an
// election: it may be there all the same, and has time to say so.
func TestNobodyCouldBeat(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler)})
	w.OK(err)
	t.Cleanup(func() { _ = srv.Shutdown() })
	way := &mute{}
	nc, err := nats.Connect(srv.ClientURL(), nats.SetCustomDialer(way), nats.NoReconnect(), nats.Timeout(time.Minute))
	w.OK(err)
	t.Cleanup(nc.Close)
	a := w.joinOver("a", nc)
	other, err := srv.Connect()
	w.OK(err)
	t.Cleanup(other.Close)
	js, err := jetstream.New(other)
	w.OK(err)
	kv, err := js.KeyValue(w.Ctx, "reprise_members")
	w.OK(err)
	_, err = other.Subscribe("_actor.reprise.ping.b", func(m *nats.Msg) { _ = m.Respond(nil) })
	w.OK(err)
	keys, err := kv.Watch(w.Ctx, "m.b")
	w.OK(err)
	_, err = kv.Put(w.Ctx, "m.b", []byte("{}"))
	w.OK(err)
	w.sees(a, "a", "b")
	w.OK(way.set(true))
	for e := range keys.Updates() {
		if e != nil && e.Operation() == jetstream.KeyValuePurge {
			break
		}
	}
	_, err = kv.Put(w.Ctx, "m.c", []byte("{}")) // which is told after that
	w.OK(err)
	w.until(a, "c is seen", func() bool { return a.Alive("c") })
	if !a.Alive("b") {
		t.Error("b is dead, and could not have renewed its key")
	}
	w.OK(way.set(false))
	w.until(a, "b is given up when it does not come back", func() bool { return !a.Alive("b") })
}

// A connection is made anew. If the key was removed meanwhile that ends the trust, as
// if a beat had found out; if it was not, nothing has happened.
func TestConnectedAnew(t *testing.T) {
	w := newWorld(t)
	m, nc := w.join("a")
	js, err := jetstream.New(w.Connect())
	w.OK(err)
	kv, err := js.KeyValue(w.Ctx, "reprise_members")
	w.OK(err)
	keys, err := kv.Watch(w.Ctx, "m.a")
	w.OK(err)
	renewed := func(times int) {
		t.Helper()
		for range times {
			select {
			case <-keys.Updates():
			case <-w.Ctx.Done():
				t.Fatalf("it does not beat; logged:\n%s", w.Log)
			}
		}
	}
	renewed(2) // the first one, and that it was the last until now
	var term uint64
	for kept := false; !kept; {
		var began time.Time
		term, began = w.trusts(m)
		w.OK(nc.ForceReconnect())
		renewed(3)
		kept = w.kept(m, term, began)
	}
	w.OK(kv.Delete(w.Ctx, "m.a"))
	w.OK(nc.ForceReconnect())
	w.until(m, "another term begins", func() bool {
		is, inTime := m.Trust()
		return is != term && inTime
	})
	if m.Trusted() {
		t.Error("it trusts itself though nobody has looked")
	}
	w.Eventually("it says so", func() bool { return strings.Contains(w.Log.String(), "had lapsed") })
	w.trusts(m)
}
