package cluster_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// An input without an id is delivered again after its append, because its
// acknowledgements are lost: to the same node by another consumer, and to the next node.
// It is the same input each time, and one turn.
func TestRedeliveredAfterItsAppend(t *testing.T) { // A106
	w := newWorld(t)
	srv := w.serve(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir()})
	w.use(w.connect())
	const acks = "$JS.ACK.REPRISE_IN.>" // consumer, deliveries, sequence in the stream
	w.ok(srv.GlobalAccount().AddMapping(acks, "lost.>"))
	lost, err := w.nc.SubscribeSync("lost.>")
	w.ok(err)
	sent, err := w.nc.SubscribeSync("_INBOX.>")
	w.ok(err)
	// applied waits until the first message of the stream is delivered, and then until the
	// node has acknowledged it.
	applied := func() (by string) {
		t.Helper()
		for {
			msg, err := sent.NextMsgWithContext(w.ctx)
			w.ok(err)
			if at := strings.Split(msg.Reply, "."); strings.HasPrefix(msg.Reply, "$JS.ACK.REPRISE_IN.") && at[5] == "1" {
				break
			}
		}
		for {
			msg, err := lost.NextMsgWithContext(w.ctx)
			w.ok(err)
			if at := strings.Split(msg.Subject, "."); at[3] == "1" {
				return at[1]
			}
		}
	}
	model := echo()
	n := w.node(agents(model, nil))
	for range 2 { // the same words twice are two inputs
		w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("hello")))
	}
	first := applied()
	if got := count(w.events(n.Client(), "assistant/a"), "input.accepted"); got == 0 {
		t.Error("it was acknowledged before its append")
	}
	stream, err := w.js.Stream(w.ctx, "REPRISE_IN")
	w.ok(err)
	w.ok(stream.DeleteConsumer(w.ctx, first))
	applied()
	completed := 0
	w.until(n.Client(), "assistant/a", func(e event) bool {
		if e.Type == "turn.completed" {
			completed++
		}
		return completed == 2
	})
	w.ok(n.Close())
	n = w.node(agents(model, nil))
	next := applied()
	if next == first {
		t.Errorf("the next node pulls by %s as well", next)
	}
	if !srv.GlobalAccount().RemoveMapping(acks) {
		t.Fatal("acknowledgements are still lost")
	}
	w.ok(stream.DeleteConsumer(w.ctx, next))
	w.eventually("the queue is empty", func() bool {
		info, err := stream.Info(w.ctx)
		w.ok(err)
		return info.State.Msgs == 0
	})
	events := w.events(n.Client(), "assistant/a")
	if count(events, "input.accepted") != 2 || count(events, "turn.started") != 2 || count(events, "turn.completed") != 2 || model.Calls() != 2 {
		t.Errorf("%d model calls, %+v", model.Calls(), events)
	}
	for _, e := range events {
		if e.Type == "input.accepted" && !strings.HasPrefix(e.field("input"), "in:") {
			t.Errorf("the input has an id of its own: %s", e.Data)
		}
	}
}
