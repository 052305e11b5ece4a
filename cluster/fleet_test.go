package cluster_test

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/fleet"
)

// keeps is a node that keeps its views in a folder.
func keeps(dir string) change { return func(c *cluster.Config) { c.Views = dir } }

// fleetOf is everything that a node's views of the fleet say.
func (w *world) fleetOf(n *cluster.Node) string {
	w.t.Helper()
	var text strings.Builder
	queries := []messages.Query{{View: "approvals"}, {View: "effects"}, {View: "effects", Tool: "refund", Where: map[string]string{"order": "8"}}}
	for _, by := range fleet.By {
		queries = append(queries, messages.Query{View: "usage", By: by})
	}
	for _, q := range queries {
		for line, err := range n.Client().QueryTenant(w.ctx, messages.DefaultTenant, q, func(behind uint64) { w.t.Errorf("%s is %d behind", q.View, behind) }) {
			w.ok(err)
			text.WriteString(q.View + " " + string(line) + "\n")
		}
	}
	return text.String()
}

// Every node's views of the fleet tell the same of the agents of all nodes, and
// the same again when they were deleted.
func TestViewsOfAllNodes(t *testing.T) { // A52, A87
	w := newWorld(t)
	var ran atomic.Int32
	dir := t.TempDir()
	one := w.node(refunds(&ran), keeps(filepath.Join(dir, "one")))
	two := w.node(refunds(&ran)) // in a temporary folder
	for _, agent := range []string{"assistant/a", "assistant/b", "assistant/c", "assistant/d"} {
		_, err := two.Client().Send(w.ctx, agent, input("u1", "pay them back"))
		w.ok(err)
		w.until(one.Client(), agent, ofType("turn.paused"))
	}
	for p, err := range one.Client().Approvals(w.ctx, "assistant/b") {
		w.ok(err)
		_, err = two.Client().Do(w.ctx, "assistant/b", messages.Approve{Call: p.Call, ArgsHash: p.ArgsHash})
		w.ok(err)
	}
	w.until(one.Client(), "assistant/b", ofType("turn.completed"))
	want := w.fleetOf(one)
	for part, times := range map[string]int{"approvals {": 6, `"outcome":"waiting"`: 6, `"outcome":"completed"`: 6 + 4, `"type":"agent"`: 4, `"type":"total","calls":5,`: len(fleet.By)} {
		if got := strings.Count(want, part); got != times {
			t.Errorf("%s is said %d times, want %d:\n%s", part, got, times, want)
		}
	}
	if got := w.fleetOf(two); got != want {
		t.Errorf("the other node says\n%s\nwant\n%s", got, want)
	}
	w.ok(one.Close())
	w.ok(fleet.Remove(filepath.Join(dir, "one", "fleet.db")))
	if got := w.fleetOf(w.node(refunds(&ran), keeps(filepath.Join(dir, "one")))); got != want {
		t.Errorf("built again they say\n%s\nwant\n%s", got, want)
	}
}
