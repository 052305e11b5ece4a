package cluster_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/fleet"
)

// keeps is a node that keeps its views in a folder.
func keeps(dir string) change { return func(c *cluster.Config) { c.Views = dir } }

// fleetOf is everything that a node's views of the fleet say.
func (w *world) fleetOf(n *cluster.Node) string {
	w.t.Helper()
	text, behind := "", true
	w.eventually("the views catch up", func() bool {
		text, behind = w.fleetNow(n)
		return !behind
	})
	return text
}

func (w *world) fleetNow(n *cluster.Node) (_ string, late bool) {
	w.t.Helper()
	var text strings.Builder
	queries := []messages.Query{{View: "approvals"}, {View: "effects"}, {View: "effects", Tool: "refund", Where: map[string]string{"order": "8"}}}
	for _, by := range fleet.By {
		queries = append(queries, messages.Query{View: "usage", By: by})
	}
	for _, q := range queries {
		for line, err := range n.Client().QueryTenant(w.ctx, messages.DefaultTenant, q, func(l client.Lacks) { late = late || l.Behind > 0 }) {
			w.ok(err)
			text.WriteString(q.View + " " + string(line) + "\n")
		}
	}
	return text.String(), late
}

// A doctor that looks deep compares the views with a replay.
func TestDoctorComparesTheViews(t *testing.T) { // A52, A87
	w := newWorld(t)
	var ran atomic.Int32
	dir := t.TempDir()
	n := w.node(refunds(&ran), keeps(dir))
	for _, agent := range []string{"assistant/a", "assistant/b", "assistant/c"} {
		_, err := n.Client().Send(w.ctx, agent, input("u1", "pay them back"))
		w.ok(err)
		w.until(n.Client(), agent, ofType("turn.paused"))
	}
	_, err := n.Client().Do(w.ctx, "assistant/c", messages.Delete{ID: "d1"})
	w.ok(err)
	w.until(n.Client(), "assistant/c", ofType("agent.purged"))
	if found, sum := w.examined(n.Client(), messages.Query{Deep: true}); len(found) != 0 || sum.Agents != 3 {
		t.Fatalf("%+v %+v", found, sum)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "fleet.db")+"?_pragma=busy_timeout(5000)")
	w.ok(err)
	defer func() { w.ok(db.Close()) }()
	for _, harm := range []string{
		`UPDATE effects SET line = replace(line, '"refund"', '"refuse"') WHERE agent = (SELECT id FROM agents WHERE key = 'a')`,
		`UPDATE usage SET input = input + 1 WHERE agent = (SELECT id FROM agents WHERE key = 'b')`,
		`INSERT INTO agents (shard, tenant, kind, key, last) VALUES (0, 'default', 'assistant', 'c', 1)`,
		`INSERT INTO effects SELECT (SELECT id FROM agents WHERE key = 'c'), n, tenant, kind, tool, outcome, at, leaves, line FROM effects WHERE agent = (SELECT id FROM agents WHERE key = 'b')`,
	} {
		changed, err := db.ExecContext(w.ctx, harm)
		w.ok(err)
		if n, _ := changed.RowsAffected(); n == 0 {
			t.Fatalf("nothing is changed by %s", harm)
		}
	}
	if found, _ := w.examined(n.Client(), messages.Query{}); len(found) != 0 {
		t.Errorf("nobody asked to look deep: %+v", found)
	}
	found, sum := w.examined(n.Client(), messages.Query{Deep: true})
	said := make(map[string]string)
	for _, f := range found {
		said[f.Agent.Key] = f.Check + " " + f.Detail
	}
	if len(found) != 3 || sum.Problems != 3 || !strings.Contains(said["a"], "call of refund") || !strings.Contains(said["b"], "tokens") || !strings.Contains(said["c"], "calls of tools") {
		t.Errorf("%+v", found)
	}
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
