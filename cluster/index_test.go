package cluster_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections/index"
)

// keeps is a node that keeps its index in a folder.
func keeps(dir string) change { return func(c *cluster.Config) { c.IndexDir = dir } }

// indexOf is everything that a node's index says.
func (w *world) indexOf(n *cluster.Node) string {
	w.t.Helper()
	text, behind := "", true
	w.eventually("the index catches up", func() bool {
		text, behind = w.indexNow(n)
		return !behind
	})
	return text
}

func (w *world) indexNow(n *cluster.Node) (_ string, late bool) {
	w.t.Helper()
	var text strings.Builder
	queries := []messages.Query{{View: "approvals"}, {View: "effects"}, {View: "effects", Tool: "refund", Where: map[string]string{"order": "8"}}}
	for _, by := range index.By {
		queries = append(queries, messages.Query{View: "usage", By: by})
	}
	for _, q := range queries {
		for line, err := range n.Client().QueryTenant(w.ctx, messages.DefaultTenant, q, func(l client.Lacks) { late = late || len(l.Uncovered) > 0 }) {
			w.ok(err)
			text.WriteString(q.View + " " + string(line) + "\n")
		}
	}
	return text.String(), late
}

// A doctor that looks deep compares the index with a replay.
func TestDoctorComparesTheIndex(t *testing.T) { // A52, A87
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
	w.until(n.Client(), "assistant/c", ofType("agent.deleted"))
	w.indexOf(n) // so that they have forgotten it
	if found, sum := w.examined(n.Client(), messages.Query{Deep: true}); len(found) != 0 || sum.Agents != 3 {
		t.Fatalf("%+v %+v", found, sum)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "index.db")+"?_pragma=busy_timeout(5000)")
	w.ok(err)
	defer func() { w.ok(db.Close()) }()
	for _, harm := range []string{
		`UPDATE effects SET line = replace(line, '"refund"', '"refuse"') WHERE agent = (SELECT id FROM agents WHERE key = 'a')`,
		`UPDATE usage SET input = input + 1 WHERE agent = (SELECT id FROM agents WHERE key = 'b')`,
		`INSERT INTO agents (shard, tenant, kind, key, last) VALUES (0, 'default', 'assistant', 'c', 1)`,
		`INSERT INTO effects SELECT (SELECT id FROM agents WHERE key = 'c'), n, shard, tenant, kind, name, tool, outcome, at, call, key, same, acted, leaves, line, crc FROM effects WHERE agent = (SELECT id FROM agents WHERE key = 'b')`,
	} {
		changed, err := db.ExecContext(w.ctx, harm)
		w.ok(err)
		if n, _ := changed.RowsAffected(); n == 0 {
			t.Fatalf("nothing is changed by %s", harm)
		}
	}
	if found, _ := w.examined(n.Client(), messages.Query{}); len(found) != 0 {
		t.Errorf("found without Deep: %+v", found)
	}
	found, sum := w.examined(n.Client(), messages.Query{Deep: true})
	said := make(map[string]string)
	for _, f := range found {
		said[f.Agent.Key] = f.Check + " " + f.Detail
	}
	if len(found) != 3 || sum.Problems != 3 || !strings.Contains(said["a"], "call of refund") || !strings.Contains(said["b"], "tokens") || !strings.Contains(said["c"], "tool calls") {
		t.Errorf("%+v", found)
	}
}

// An index that is damaged while a node keeps it is built again for the next query, which waits
// for that; a doctor reports it, too.
func TestDamagedViewsAreBuiltAgain(t *testing.T) { // A52, A87
	w := newWorld(t)
	var ran atomic.Int32
	dir := t.TempDir()
	n := w.node(refunds(&ran), keeps(dir))
	for _, agent := range []string{"assistant/a", "assistant/b"} {
		_, err := n.Client().Send(w.ctx, agent, input("u1", "pay them back"))
		w.ok(err)
		w.until(n.Client(), agent, ofType("turn.paused"))
	}
	want := w.indexOf(n)
	harm := func(statement string) {
		db, err := sql.Open("sqlite", filepath.Join(dir, "index.db")+"?_pragma=busy_timeout(5000)")
		w.ok(err)
		_, err = db.ExecContext(w.ctx, statement)
		w.ok(err)
		w.ok(db.Close())
	}
	ask := func() (refused *messages.Error) {
		for _, view := range []string{"effects", "usage"} {
			for _, err := range n.Client().QueryTenant(w.ctx, messages.DefaultTenant, messages.Query{View: view}) {
				errors.As(err, &refused)
			}
		}
		return refused
	}
	for _, statement := range []string{`UPDATE effects SET line = 'no line'`, `UPDATE effects SET line = '{"agent":no line}'`, `DROP TABLE hours`} {
		harm(statement)
		w.eventually("the index is built again", func() bool { return ask() == nil })
		if got := w.indexOf(n); got != want {
			t.Errorf("after %s they say\n%s\nwant\n%s", statement, got, want)
		}
	}
	harm(`DROP TABLE usage`)
	found, _ := w.examined(n.Client(), messages.Query{Deep: true})
	if len(found) == 0 || found[0].Check != "index" || !strings.Contains(found[0].Detail, "no such table") || found[0].Remedy == "" {
		t.Errorf("the doctor finds %+v", found)
	}
	w.eventually("the doctor finds nothing more", func() bool {
		found, _ := w.examined(n.Client(), messages.Query{Deep: true})
		return len(found) == 0
	})
	if got := w.indexOf(n); got != want {
		t.Errorf("after the doctor they say\n%s\nwant\n%s", got, want)
	}
}

// What a node that was killed left of its index goes when the next one starts,
// what others have open does not.
func TestLeftTemporaryIndex(t *testing.T) { // A87
	w := newWorld(t)
	opened := func() (string, *index.Store) {
		dir, err := os.MkdirTemp("", "reprise-index-")
		w.ok(err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		s, err := index.Open(w.ctx, filepath.Join(dir, "index.db"), slog.New(slog.DiscardHandler))
		w.ok(err)
		return dir, s
	}
	there := func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	}
	other, held := opened()
	defer func() { w.ok(held.Close()) }()
	killed, left := opened()
	w.ok(left.Close())
	var ran atomic.Int32
	n := w.node(refunds(&ran))
	w.indexOf(n)
	own := ""
	for line, err := range n.Client().QueryStore(w.ctx, messages.Query{View: "index"}) {
		w.ok(err)
		var place gateway.IndexPosition
		w.ok(json.Unmarshal(line, &place))
		own = filepath.Dir(place.File)
	}
	if there(killed) || !there(other) || !there(own) {
		t.Errorf("there are %s %v, %s %v and %s %v", killed, there(killed), other, there(other), own, there(own))
	}
	w.ok(n.Close())
	if there(own) {
		t.Error("the node's own is left")
	}
}

// Every node's index shows the same of the agents of all nodes, and the same again when they were
// deleted.
func TestViewsOfAllNodes(t *testing.T) { // A52, A87
	embeddedtest.Long(t, "several nodes")
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
	want := w.indexOf(one)
	for part, times := range map[string]int{"approvals {": 6, `"outcome":"waiting"`: 6, `"outcome":"completed"`: 6 + 4, `"type":"agent"`: 4, `"type":"total","calls":5,`: len(index.By)} {
		if got := strings.Count(want, part); got != times {
			t.Errorf("%s is said %d times, want %d:\n%s", part, got, times, want)
		}
	}
	if got := w.indexOf(two); got != want {
		t.Errorf("the other node says\n%s\nwant\n%s", got, want)
	}
	list := w.linesOfAll(one, messages.Query{View: "agents"})
	if got := w.linesOfAll(two, messages.Query{View: "agents"}); !slices.Equal(got, list) || len(got) != 4 {
		t.Errorf("of the agents they say\n%s\nand\n%s", list, got)
	}
	known := func(nodes ...*cluster.Node) (sum int) {
		for _, n := range nodes {
			for _, agents := range n.Agents() {
				sum += agents
			}
		}
		return sum
	}
	if n := known(one, two); n != 4 {
		t.Errorf("they know %d agents, want each to know its own of 4", n)
	}
	w.ok(one.Close())
	w.ok(index.Remove(filepath.Join(dir, "one", "index.db")))
	three := w.node(refunds(&ran), keeps(filepath.Join(dir, "one")))
	if got := w.indexOf(three); got != want {
		t.Errorf("built again they say\n%s\nwant\n%s", got, want)
	}
	w.eventually("what moves is known to its owner alone", func() bool { return three.Partitions() == messages.Partitions/2 && known(two, three) == 4 })
}
