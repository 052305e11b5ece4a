package ownership_test

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/ownership"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// Members come, change what they publish, leave and die.
func TestMembers(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a := w.member("a")
	w.sees(a, "a")
	c := w.member("c")
	b := w.member("b")
	for _, m := range []*node{a, b, c} {
		w.sees(m, "a", "b", "c")
	}
	if list := a.List(); list[1].Kinds[0] != "b" || list[1].Draining || list[1].Host != "here" {
		t.Errorf("b publishes %+v", list[1])
	}
	publishes := func(draining bool) func() bool {
		return func() bool {
			return slices.ContainsFunc(a.List(), func(i ownership.Info) bool { return i.ID == "c" && i.Draining == draining })
		}
	}
	w.OK(c.Drain(w.Ctx, true)) // the set of ids stays the same
	w.Eventually("c drains", publishes(true))
	w.OK(c.Drain(w.Ctx, false))
	w.Eventually("c takes part again", publishes(false))
	b.conn.Close() // as a killed process does
	w.sees(a, "a", "c")
	for !strings.Contains(w.Log.String(), `its ping has no subscriber" member=b`) { // where a machine stalled its key has expired before
		b = w.member("b")
		w.sees(a, "a", "b", "c")
		b.conn.Close()
		w.sees(a, "a", "c")
	}
	c.Close()
	w.sees(a, "a")
}

// A member whose key was removed is not trusted until it has joined again; without heartbeats
// its trust ends.
func TestTrust(t *testing.T) {
	w := newWorld(t)
	m := w.member("a")
	w.Eventually("it is trusted", m.Trusted)
	w.OK(w.bucket("members").Delete(w.Ctx, "m.a"))
	w.Eventually("it has joined again", func() bool { return strings.Contains(w.Log.String(), "had lapsed; it joins again") })
	w.Eventually("it is trusted again", m.Trusted)
	w.OK(w.Srv.Shutdown()) // nothing renews it now
	w.Eventually("its trust ends", func() bool { return !m.Trusted() })
	w.Eventually("it warns", func() bool { return strings.Contains(w.Log.String(), "owns nothing until it is") })
}

// kept fails if the membership lapsed, unless no heartbeat could be written in time, as on a
// machine that stalled.
func (w *world) kept() {
	w.T.Helper()
	if log := w.Log.String(); strings.Contains(log, "had lapsed") && !strings.Contains(log, "not renewed in time") {
		w.T.Fatalf("the membership lapsed; logged:\n%s", log)
	}
}

// A bucket that was removed and made again by another node, between two heartbeats of
// this one, begins again with small revisions, for which the old watch does not look.
func TestTheBucketIsAnotherOne(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	js := w.js
	_, err := js.CreateKeyValue(w.Ctx, jetstream.KeyValueConfig{
		Bucket: "reprise_members", TTL: ownership.TTL, LimitMarkerTTL: time.Second, Storage: jetstream.MemoryStorage, History: 1,
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
	a := w.member("a")
	w.sees(a, "a")
	made(1)
	b := w.member("b")
	w.sees(a, "a", "b")
	w.sees(b, "a", "b")
	b.conn.Close()
	w.sees(a, "a")
}

// written is a member that consists of a key and of answers to pings.
func (w *world) written(id string) (kv jetstream.KeyValue, bucket jetstream.Stream) {
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
// at once: what shows its end is gone before the library makes the consumer again.
func TestTheWatchDiesWithTheNode(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a := w.member("a")
	kv, bucket := w.written("b")
	w.sees(a, "a", "b")
	names := bucket.ConsumerNames(w.Ctx)
	for name := range names.Name() {
		if err := bucket.DeleteConsumer(w.Ctx, name); !errors.Is(err, jetstream.ErrConsumerNotFound) { // of a watch that has begun again
			w.OK(err)
		}
	}
	w.OK(names.Err())
	w.OK(kv.Delete(w.Ctx, "m.b"))
	w.sees(a, "a")
	w.kept()
	c := w.member("c") // and the new watch shows it
	w.sees(a, "a", "c")
	w.sees(c, "a", "c")
}

// A member's key was purged from the stream, which a watch does not show.
func TestTheEndIsNotTold(t *testing.T) {
	embeddedtest.Long(t, "several members")
	w := newWorld(t)
	a := w.member("a")
	_, bucket := w.written("b")
	w.sees(a, "a", "b")
	w.OK(bucket.Purge(w.Ctx, jetstream.WithPurgeSubject("$KV.reprise_members.m.b")))
	w.sees(a, "a")
}

// mute is the way to a server that keeps what is sent for as long as it is set to.
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
	a := w.over(nc, "a", true)
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
	_, err = kv.Put(w.Ctx, "m.c", []byte("{}")) // which is shown after that
	w.OK(err)
	w.Eventually("c is seen", func() bool { return slices.Contains(a.ids(), "c") })
	if !slices.Contains(a.ids(), "b") {
		t.Error("b is dead, and could not have renewed its key")
	}
	w.OK(way.set(false))
	w.Eventually("b is given up when it does not come back", func() bool { return !slices.Contains(a.ids(), "b") })
}

// A connection is made again. If the key was removed meanwhile that ends the trust; if it was
// not, nothing has happened.
func TestConnectedAgain(t *testing.T) {
	w := newWorld(t)
	m := w.member("a")
	kv := w.bucket("members")
	keys, err := kv.Watch(w.Ctx, "m.a")
	w.OK(err)
	renewed := func(times int) {
		t.Helper()
		for range times {
			select {
			case <-keys.Updates():
			case <-w.Ctx.Done():
				t.Fatalf("there is no heartbeat; logged:\n%s", w.Log)
			}
		}
	}
	renewed(2) // the first one, and that it was the last until now
	w.Eventually("it is trusted", m.Trusted)
	w.OK(m.conn.ForceReconnect())
	renewed(3)
	w.kept()
	w.Eventually("it is trusted", m.Trusted)
	w.OK(kv.Delete(w.Ctx, "m.a"))
	w.OK(m.conn.ForceReconnect())
	w.Eventually("it has joined again", func() bool { return strings.Contains(w.Log.String(), "had lapsed; it joins again") })
	w.Eventually("it is trusted again", m.Trusted)
}
