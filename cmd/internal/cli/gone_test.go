package cli_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// A node that ends while it is drained has no partitions any more, which is what was
// wanted.
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
	ends := client.Node{ID: "01ENDS", Host: "there", Draining: true, Partitions: 3}
	answer, err := json.Marshal(client.NodeAnswer{Nodes: []client.Node{ends}})
	if err != nil {
		t.Fatal(err)
	}
	subjects := messages.Subjects{Root: messages.DefaultRoot}
	for _, format := range []string{"text", "json"} {
		for subject, times := range map[string]int{subjects.NodeOrders(""): 1, subjects.NodeOrders(ends.ID): 2} {
			sub, err := nc.Subscribe(subject, func(msg *nats.Msg) { _ = msg.Respond(answer) })
			if err == nil {
				err = sub.AutoUnsubscribe(times)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		want := "node 01ENDS on there has gone"
		if format == "json" {
			want = `"partitions":0`
		}
		w.run("drain", "there", "--nats", srv.ClientURL(), "-o", format).exits(0, want)
	}
}
