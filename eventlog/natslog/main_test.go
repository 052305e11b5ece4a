package natslog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/internal/answers"
	"github.com/reprise-dev/reprise/messages"
)

// shared is the one server of this package's tests; each takes a root of its own.
var shared *embedded.Server

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	if config := os.Getenv(asServer); config != "" {
		serveAs(config)
	}
	dir, err := os.MkdirTemp("", "natslog")
	if err != nil {
		panic(err)
	}
	shared, err = embedded.Start(embedded.Config{Dir: dir, DontListen: true, Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		panic(err)
	}
	keepOne()
	if os.Getenv("REPRISE_REPLICAS") == "" { // where servers are killed answers are lost
		answers.Wait = 20 * time.Second
	}
	code := m.Run()
	_ = shared.Shutdown()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// keepOne keeps a stream permanently: a server removes an account's folder with
// its last stream, and a stream created at that moment fails with 10049.
func keepOne() {
	nc, err := shared.Connect()
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "KEEP", Subjects: []string{"keep"}})
	}
	if err != nil {
		panic(err)
	}
}

var roots atomic.Int64

// freshRoot names subjects that no other test uses, also with -count.
func freshRoot() messages.Subjects {
	return messages.Subjects{Root: fmt.Sprintf("r%d", roots.Add(1))}
}

func connect(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := shared.Connect(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// open opens a log of its own on the shared server; its streams go with the test.
func open(t testing.TB, conns int) (*natslog.Log, natslog.Config) {
	t.Helper()
	c := natslog.Config{Subjects: freshRoot(), Logger: quiet}
	for range conns {
		c.Conns = append(c.Conns, connect(t))
	}
	l, err := natslog.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeStreams(t, c) })
	return l, c
}
