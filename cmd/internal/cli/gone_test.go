package cli_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// A node that stops while it is drained is waited for until the others no longer list it: until
// then its partitions are not taken over.
func TestDrainOfANodeThatEnds(t *testing.T) { // A91
	w := newWorld(t)
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	ends, other := client.Node{ID: "01ENDS", Host: "there", Draining: true, Partitions: 3}, client.Node{ID: "02OTHER", Host: "here"}
	subjects := messages.Subjects{Root: messages.DefaultRoot}
	answer := func(msg *nats.Msg, nodes ...client.Node) {
		b, err := json.Marshal(client.NodeAnswer{Nodes: nodes})
		if err != nil {
			t.Error(err)
		}
		_ = msg.Respond(b)
	}
	var lists atomic.Int32
	if _, err := nc.Subscribe(subjects.NodeOrders(""), func(msg *nats.Msg) {
		if lists.Add(1) >= 4 {
			answer(msg, other)
			return
		}
		answer(msg, other, ends)
	}); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "json"} {
		lists.Store(0)
		sub, err := nc.Subscribe(subjects.NodeOrders(ends.ID), func(msg *nats.Msg) { answer(msg, ends) })
		if err == nil {
			err = errors.Join(sub.AutoUnsubscribe(2), nc.Flush())
		}
		if err != nil {
			t.Fatal(err)
		}
		want := "node 01ENDS on there has left the cluster"
		if format == "json" {
			want = `"partitions":0`
		}
		w.run("drain", "there", "--nats", srv.ClientURL(), "-o", format).exits(0, want)
		if got := lists.Load(); got < 4 {
			t.Errorf("the nodes were listed %d times: the drain ended while the node was among them", got)
		}
	}
}
