package archive

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// An agent to which something is on its way does not rest, and is left alone.
func TestRetentionWaitsForTheInbox(t *testing.T) { // A108
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet})
	ok(err)
	defer func() { _ = srv.Shutdown() }()
	conn, err := natslog.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
	ok(err)
	defer conn.Close()
	streams, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{conn}, Logger: quiet})
	ok(err)
	js, err := jetstream.New(conn)
	ok(err)
	a, b := messages.AgentID{Tenant: "default", Kind: "support", Key: "a"}, messages.AgentID{Tenant: "default", Kind: "support", Key: "b"}
	r := &Retention{JetStream: js, Inbox: streams.Names().Inbox()}
	_, err = js.Publish(ctx, messages.Subjects{}.In(a), []byte("hello"))
	ok(err)
	for agent, want := range map[messages.AgentID]bool{a: true, b: false} {
		if comes, err := r.comes(ctx, agent); err != nil || comes != want {
			t.Errorf("%s: something comes %v, %v", agent, comes, err)
		}
	}
	if err := r.retire(ctx, a, time.Now()); err != nil { // it is not even woken
		t.Error(err)
	}
}
