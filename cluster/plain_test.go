package cluster_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// ends waits until a node has ended by itself, because the store is encrypted.
func (w *world) ends(n *cluster.Node) {
	w.t.Helper()
	select {
	case <-n.Ended():
	case <-w.ctx.Done():
		w.t.Fatal("the node keeps running")
	}
	if err := n.Err(); err == nil || !strings.Contains(err.Error(), "--key-file") {
		w.t.Errorf("it says %v", err)
	}
	w.eventually("the node closes by itself", n.Closed)
	w.ok(n.Close()) // and waits for its end
}

// A node without the key beside one that has just turned encryption on stops, and
// what it had begun continues there, encrypted.
func TestNoNodeStaysPlain(t *testing.T) { // A108
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	gate := scripted.NewGate()
	plain := w.node(agents(scripted.New(scripted.Held(gate, scripted.Say("never"))), nil))
	if plain.Err() != nil || plain.Encrypted() {
		t.Fatal(plain.Err())
	}
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(`{"id":"u1","content":"before"}`)))
	<-gate.Reached()
	keyed := w.node(under(key(1)))
	w.ends(plain)
	w.until(keyed.Client(), "assistant/a", ofType("turn.completed"))
	w.eventually("the other has every partition", func() bool { return keyed.Partitions() == 64 })
	w.say(keyed.Client(), "assistant/a", "u2", secret)
	w.say(keyed.Client(), "assistant/b", "u1", secret)
	w.eventually("its inputs are applied", func() bool { return len(w.holding(secret)) == 0 })
	if n, err := cluster.Start(w.ctx, w.config()); err == nil {
		_ = n.Close()
		t.Error("a node without the key starts")
	}
}

// One that was cut off while the store was encrypted takes nothing when it is back.
func TestNoNodeComesBackPlain(t *testing.T) { // A108
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	line := &wire{}
	plain := w.node(over(line))
	line.cut()
	keyed := w.node(under(key(1)))
	w.eventually("the other has every partition", func() bool { return keyed.Partitions() == 64 })
	w.ok(keyed.Close())
	line.heal()
	w.ends(plain)
	if n := plain.Partitions(); n != 0 {
		t.Errorf("it owns %d partitions", n)
	}
}
