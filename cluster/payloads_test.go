package cluster_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers/memory"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// TestPayloadMemory holds that a node keeps to the memory that it is given for payloads, and
// says what it is; and that a caller is shown a large answer once and whole all the same, as
// it comes and from the log.
func TestPayloadMemory(t *testing.T) {
	w := newWorld(t)
	text := lines("a", 300<<10)
	model := scripted.Func(func(messagesRequest) scripted.Step { return scripted.Say(text) })
	usual := w.node(served)
	if got := w.metric(usual, "reprise_payload_memory_bytes"); got != float64(memory.Default()) {
		t.Errorf("a node says by default that it has %v bytes", got)
	}
	w.ok(usual.Close())
	n := w.node(served, agents(model, func(d *actors.Definition) { d.ShowAtMost = 1 << 20 }), func(c *cluster.Config) { c.PayloadMemory = 1 << 20 })
	if got := w.metric(n, "reprise_payload_memory_bytes"); got != 1<<20 {
		t.Errorf("the node says that it has %v bytes", got)
	}
	for range 2 {
		if got := w.say(n.Client(), "assistant/a", "1", "much"); got.text != text || got.end.Type != "turn.completed" {
			t.Errorf("%d bytes are shown, and it ends with %s", len(got.text), got.end.Type)
		}
	}
	why := ""
	for _, err := range n.Client().AskInput(w.ctx, "assistant/b", input("2", text)) { // its model is to see it as a whole
		if err != nil {
			why = err.Error()
		}
	}
	if !strings.Contains(why, "--payload-memory") {
		t.Errorf("the turn fails with %q", why)
	}
}
