// Package embeddedtest provides a test with a NATS server of its own, and the means to look at it.
package embeddedtest

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// World is a server that is reached within the process alone, and goes with its test.
// It is the test's own goroutine's, but for Log.
type World struct {
	T   *testing.T
	Ctx context.Context // ends after three minutes
	Srv *embedded.Server
	Log *Words
}

// New starts a server for a test that runs beside others.
func New(t *testing.T) *World {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	w := &World{T: t, Ctx: ctx, Log: new(Words)}
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, DontListen: true})
	w.OK(err)
	t.Cleanup(func() { _ = srv.Shutdown() })
	w.Srv = srv
	return w
}

// Start starts a server on a folder, and connects to it. Both end with the test.
func Start(t testing.TB, dir string) (*embedded.Server, *nats.Conn) {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: dir, Sync: embedded.SyncRelaxed, DontListen: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return srv, nc
}

// Long skips t in short mode, which make test uses. why names what the test needs beyond
// one node, one server and no child process.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("left to make test-long: %s", why)
	}
}

// OK ends the test with err, if it is one.
func (w *World) OK(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Connect makes a connection that is closed with the test.
func (w *World) Connect() *nats.Conn {
	w.T.Helper()
	nc, err := w.Srv.Connect()
	w.OK(err)
	w.T.Cleanup(nc.Close)
	return nc
}

// Eventually looks again and again whether something is so, until Ctx ends.
func (w *World) Eventually(what string, is func() bool) {
	w.T.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ticker.C:
		case <-w.Ctx.Done():
			w.T.Fatalf("%s: it did not happen; logged:\n%s", what, w.Log)
		}
	}
}

// Words keeps what is written, as by a logger, and shows it on standard error too where
// REPRISE_TEST_LOG is set. The zero value is empty. Safe for concurrent use.
type Words struct {
	mu  sync.Mutex
	all strings.Builder
}

var _ io.Writer = (*Words)(nil)

// Write keeps b.
func (w *Words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if os.Getenv("REPRISE_TEST_LOG") != "" {
		_, _ = os.Stderr.Write(b)
	}
	return w.all.Write(b)
}

// String is everything so far.
func (w *Words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// Logger writes lines of text here.
func (w *Words) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
