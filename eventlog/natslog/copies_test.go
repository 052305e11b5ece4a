package natslog_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// underLoad skips t unless REPRISE_REPLICAS is set, as by make test-replicas.
func underLoad(t *testing.T) {
	t.Helper()
	if os.Getenv("REPRISE_REPLICAS") == "" {
		t.Skip("three servers under load take most of a minute: make test-replicas")
	}
}

// three runs a cluster of three servers in this process and connects to it.
func three(t *testing.T) ([]*embedded.Server, *nats.Conn) {
	t.Helper()
	all, err := embedded.StartCluster(t.Context(), 3, embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range all {
			_ = s.Shutdown()
		}
	})
	nc, err := natslog.Connect(embedded.ClientURLs(all), nats.Timeout(time.Minute), nats.ErrorHandler(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return all, nc
}

// What began with one copy, some of it changed already, is brought to three while
// agents write; then every server may go.
func TestUpgradeUnderLoad(t *testing.T) {
	underLoad(t)
	all, nc := three(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ones, mine := map[string]bool{}, logtest.Agent("0").Partition()
	names := natslog.NamesOf(messages.Subjects{})
	for _, cfg := range natslog.Streams(messages.Subjects{}, 1) {
		if cfg.Name == names.Log(mine) || cfg.Name == names.Snapshots() || cfg.Name == names.Inbox() {
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			ones[cfg.Name] = true
		}
	}
	for _, bucket := range []string{"reprise_leases", "other_leases"} {
		if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket, Storage: jetstream.MemoryStorage}); err != nil {
			t.Fatal(err)
		}
	}
	ones["KV_reprise_leases"] = true
	log, err := natslog.Open(t.Context(), natslog.Config{Conns: []*nats.Conn{nc}, Replicas: 3, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	in, err := js.Stream(t.Context(), names.Inbox())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "p1", FilterSubject: "reprise.inq.1.>", MemoryStorage: true}); err != nil {
		t.Fatal(err)
	}
	l := newLedger(log)
	writing, enough := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for _, a := range l.agents(8) {
		writers.Go(func() { l.write(writing, t, a) })
	}
	l.grow(t, 10)
	for _, run := range []struct {
		dry  bool
		want map[string]bool
	}{{true, ones}, {false, ones}, {false, nil}} {
		few := map[string]bool{}
		after, err := natslog.Scale{Conn: nc, Replicas: 3, DryRun: run.dry, Progress: func(c natslog.Copies, done bool) {
			if c.Replicas == 1 && !done {
				few[c.Stream] = true
			}
		}}.Run(t.Context())
		if err != nil || len(after) != len(natslog.StreamNames(messages.Subjects{}))+2 || !maps.Equal(few, run.want) {
			t.Fatalf("dry %v: %d streams, changed %v, want %v; %v", run.dry, len(after), few, run.want, err)
		}
		for _, c := range after {
			if !run.dry && (!c.Whole(3) || c.Stream == names.Inbox() && c.Consumers != 1) {
				t.Errorf("%+v", c)
			}
		}
	}
	if err := all[0].Shutdown(); err != nil {
		t.Fatal(err)
	}
	l.grow(t, 10)
	enough()
	writers.Wait()
	l.check(t, false)
	for whole := true; whole; { // until the others know
		now, err := log.Copies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		whole = slices.ContainsFunc(now, func(c natslog.Copies) bool { return c.Whole(3) })
	}
}

// A server that stands alone, one without JetStream, and a store that is not there:
// each is refused in words, and nothing is changed.
func TestUpgradeRefuses(t *testing.T) {
	nc := connect(t)
	l, c := open(t, 1)
	for _, test := range []struct {
		up   natslog.Scale
		says string
	}{
		{natslog.Scale{Conn: nc, Subjects: c.Subjects, Replicas: 3}, "stands alone"},
		{natslog.Scale{Conn: nc, Subjects: messages.Subjects{Root: "nowhere"}, Replicas: 3}, "no store with root nowhere"},
	} {
		if _, err := test.up.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v, want one that says %q", err, test.says)
		}
	}
	now, err := l.Copies(t.Context())
	if err != nil || len(now) != len(natslog.StreamNames(c.Subjects))+1 { // and the marks
		t.Errorf("%d streams, %v", len(now), err)
	}
	for _, s := range now {
		if !s.Whole(1) || s.Clustered {
			t.Errorf("%+v", s)
		}
	}
}
