package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// An operator's order that a frozen node was given, or that was lost on its way, is
// given again.
func TestOrdersAreGivenAgain(t *testing.T) {
	w := newWorld(t)
	n := w.node()
	subjects := messages.Subjects{Root: "reprise"}
	orders := make(chan *nats.Msg, 100)
	_, err := w.nc.ChanSubscribe(subjects.NodeOrders("FROZEN"), orders)
	w.ok(err)
	silent := make(chan *nats.Msg, 1)
	frozen, err := w.nc.ChanQueueSubscribe(subjects.NodeOrders(""), "nodes", silent)
	w.ok(err)
	w.ok(frozen.AutoUnsubscribe(1))
	w.ok(w.nc.Flush())
	go func() {
		<-orders // while it was frozen
		b, _ := json.Marshal(client.NodeAnswer{Nodes: []client.Node{{ID: "FROZEN", Partitions: 7}}})
		for {
			select {
			case again := <-orders:
				_ = again.Respond(b)
			case <-w.ctx.Done():
				return
			}
		}
	}()
	if got, err := n.Client().Node(w.ctx, "FROZEN"); err != nil || got.Partitions != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	for len(silent) == 0 { // a coin decides who is asked
		if got, err := n.Client().FindNode(w.ctx, strings.ToLower(n.ID())); err != nil || got.ID != n.ID() {
			t.Fatalf("%+v, %v", got, err)
		}
	}
}
