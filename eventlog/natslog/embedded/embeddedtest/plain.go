package embeddedtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
)

// PlainConfig says how to run a plain server.
type PlainConfig struct {
	Dir string
	// SyncAlways forces each message to disk, else all are each second.
	SyncAlways bool
	// Log receives the server's warnings. Nil: they are dropped.
	Log *Words
}

// Plain starts a NATS server as people run it by themselves, which examines nothing before
// it opens a folder, and connects to it on the loopback. Both end with the test. stop ends
// both before, in order.
func Plain(t testing.TB, c PlainConfig) (nc *nats.Conn, stop func()) {
	t.Helper()
	srv, err := server.NewServer(&server.Options{
		ServerName: "plain", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		JetStream: true, StoreDir: c.Dir, JetStreamMaxStore: 1 << 40, SyncAlways: c.SyncAlways, SyncInterval: time.Second, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Log != nil {
		srv.SetLoggerV2(warnings{c.Log}, false, false, false)
	}
	stop = func() {
		if nc != nil {
			nc.Close()
		}
		srv.Shutdown()
		srv.WaitForShutdown()
	}
	t.Cleanup(stop)
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server takes no connections")
	}
	if nc, err = natslog.Connect(srv.ClientURL(), nats.Timeout(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return nc, stop
}

// warnings keeps what a server warns of.
type warnings struct{ *Words }

func (w warnings) line(format string, v []any) { _, _ = fmt.Fprintf(w.Words, format+"\n", v...) }

// Warnf implements server.Logger, as the others do.
func (w warnings) Warnf(format string, v ...any)  { w.line(format, v) }
func (w warnings) Errorf(format string, v ...any) { w.line(format, v) }
func (w warnings) Fatalf(format string, v ...any) { w.line(format, v) }
func (warnings) Noticef(string, ...any)           {}
func (warnings) Debugf(string, ...any)            {}
func (warnings) Tracef(string, ...any)            {}
