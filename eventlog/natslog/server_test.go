package natslog_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
)

// configured runs a server with a configuration file as an administrator writes it, and
// returns its address. It listens on any port of the loopback.
func configured(t *testing.T, conf string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte("listen: 127.0.0.1:-1\n"+conf), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog, opts.AuthTimeout = true, true, 60
	if opts.JetStream {
		opts.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	return s.ClientURL()
}

// connected returns two connections to a server.
func connected(t *testing.T, url string) (conns [2]*nats.Conn) {
	t.Helper()
	for i := range conns {
		nc, err := natslog.Connect(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		conns[i] = nc
	}
	return conns
}

// answered returns a connection to a server without JetStream, whose requests to JetStream's API get
// these answers.
func answered(t *testing.T, answers map[string]func(*nats.Msg) *nats.Msg) *nats.Conn {
	t.Helper()
	conns := connected(t, configured(t, ""))
	for subject, answer := range answers {
		if _, err := conns[1].Subscribe("$JS.API."+subject, func(m *nats.Msg) { _ = m.RespondMsg(answer(m)) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := conns[1].Flush(); err != nil {
		t.Fatal(err)
	}
	return conns[0]
}
