package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// Inputs for a kind that another node defines are held by one that does not, and
// are applied when it has gone; one for a kind that no node defines is a dead letter.
func TestHeldForAnotherNode(t *testing.T) { // A91, A102
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	first := w.node()
	second := w.node(func(c *cluster.Config) {
		c.Agents = append(c.Agents, actors.Definition{Kind: "new", Model: "test/model", Instructions: "Be brief."})
	})
	w.even(first, second)
	const n = 8
	from := 0 // the first of them is the first node's
	for ; w.owner(messages.AgentID{Tenant: "default", Kind: "new", Key: fmt.Sprint("a", from)}.Partition()) != first.ID(); from++ {
	}
	for i := range n {
		w.ok(w.nc.Publish(fmt.Sprintf("reprise.in.default.new.a%d", from+i), []byte("hello")))
	}
	w.ok(w.nc.Publish("reprise.in.default.nobody.a", []byte("hello")))
	if letters := w.letters(first.Client(), "default", 1); !strings.Contains(letters[0].Reason, `"nobody"`) {
		t.Errorf("%+v", letters)
	}
	w.eventually("inputs are held", func() bool { return strings.Contains(w.log.String(), "are held") })
	w.ok(first.Close())
	for i := range n {
		w.until(second.Client(), fmt.Sprintf("new/a%d", from+i), ofType("turn.completed"))
	}
	if letters := w.letters(second.Client(), "default", 1); len(letters) != 1 {
		t.Errorf("refused was %+v", letters)
	}
}
