package natslog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// A connection whose login is refused for a while, as while a password is changed, is
// back when the login is right again.
func TestARefusedLoginIsTriedAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	login := func(password string) *server.Options {
		return &server.Options{Host: "127.0.0.1", Port: -1, Username: "node", Password: password, NoSigs: true, NoLog: true, AuthTimeout: 60}
	}
	s, err := server.NewServer(login("old"))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	refused, back, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	nc, err := natslog.Connect(strings.Replace(s.ClientURL(), "://", "://node:old@", 1), nats.Timeout(time.Minute),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {
			select {
			case refused <- struct{}{}:
			case <-ctx.Done():
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { close(back) }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	wait := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-closed:
			t.Fatalf("the connection was given up: no %s", what)
		case <-ctx.Done():
			t.Fatalf("there was no %s", what)
		}
	}
	if err := s.ReloadOptions(login("new")); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		wait(fmt.Sprintf("refusal %d", i+1), refused)
	}
	if err := s.ReloadOptions(login("old")); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-refused: // an earlier one, which the connection may report only now
			continue
		case <-back:
			return
		case <-closed:
			t.Fatal("the connection was given up")
		case <-ctx.Done():
			t.Fatal("there was no connection")
		}
	}
}

// Nodes that start at the same moment on a new store of three copies store the same
// definitions: one in hand for another is no refusal.
func TestDefinitionsAreStoredAtOnce(t *testing.T) {
	embeddedtest.Long(t, "several servers")
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	servers, err := embedded.StartCluster(ctx, 3, embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	var logs []*natslog.Log
	for range 3 {
		nc, err := natslog.Connect(embedded.ClientURLs(servers), nats.Timeout(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		log, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{nc}, Replicas: 3, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, log)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		definition := fmt.Appendf(nil, "definition %d", i)
		for _, log := range logs {
			wg.Go(func() {
				if hash, err := log.PutDefinition(ctx, definition); err != nil || hash != messages.DigestOf(definition) {
					t.Errorf("definition %d: %q, %v", i, hash, err)
				}
			})
		}
	}
	wg.Wait()
}
