package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// start starts a server with JetStream, in a folder and on an address of its own.
func start(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.JetStream, o.StoreDir = true, t.TempDir()
	return startServer(t, o)
}

// startServer starts one as the options say, on an address of its own.
func startServer(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.AuthTimeout = "127.0.0.1", server.RANDOM_PORT, true, true, 60
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return srv
}

// A server whose storage is used up says so in a number; the sender gets it in words, and that
// trying again can help. What waits is reported with its age.
func TestNoRoom(t *testing.T) { // A102
	srv := start(t, &server.Options{JetStreamMaxStore: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "REPRISE_IN", Subjects: []string{"reprise.in.>"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(nc, "")
	if n, oldest, err := c.Backlog(ctx); n != 0 || !oldest.IsZero() || err != nil {
		t.Errorf("an empty queue: %d since %v, %v", n, oldest, err)
	}
	in := messages.Input{Content: messages.TextContent("hello")}
	if _, err := c.Send(ctx, "assistant/a", in); err != nil {
		t.Fatal(err)
	}
	_, err = c.Send(ctx, "assistant/a", in)
	var refused *messages.Error
	if !errors.As(err, &refused) || !refused.Temporary() || !strings.Contains(err.Error(), "no room") || !strings.Contains(err.Error(), "insufficient resources") {
		t.Errorf("refused with %v", err)
	}
	if n, oldest, err := c.Backlog(ctx); n != 1 || time.Since(oldest) > time.Minute || err != nil {
		t.Errorf("one waits: %d since %v, %v", n, oldest, err)
	}
}
