//go:build unix

package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTreeOverNodes shows an agent and those below it by one command while each lives on
// another of three nodes: they wait for a person, work and rest, with the phase and the
// tokens that the log of each has.
func TestTreeOverNodes(t *testing.T) { // A72
	w := holder(t)
	w.file("reprise.yaml", strings.Replace(family, "-c, 'cat >>paid; echo paid'", "./hold.sh", 1))
	first := object(t, w.node("serve", "--listen", "127.0.0.1:0", "--sync", "relaxed", "--http", "off", "-o", "json").ready)
	for range 2 {
		w.node("serve", "--nats", first["nats"].(string), "--http", "off", "-o", "json")
	}
	w.shared(3)
	for i := range 100 { // two of nine families have a node for each
		boss := fmt.Sprint("boss/b", i)
		w.run("ask", boss, "Ask the manager to ask the clerk to pay an amount of 50").exits(3, "waits for a person")
		tree := w.treeInPhase(boss, "paused")
		owners := w.owners(tree)
		if !distinct(owners) {
			continue
		}
		w.run("approve", boss, w.pendingCalls(boss)[0]).exits(0)
		w.started()
		w.treeInPhase(boss, "running")
		w.release()
		w.await(boss, "turn.completed")
		w.treeInPhase(boss, "idle")
		if slices.Equal(owners, w.owners(tree)) {
			return
		}
		t.Logf("once more: partitions moved from %v", owners)
	}
	t.Error("no family had a node for each of its agents")
}

// shared waits until so many nodes have their share of the partitions.
func (w *world) shared(count int) {
	w.t.Helper()
	var nodes []map[string]any
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		nodes = w.run("nodes", "-o", "json").exits(0).objects()
		if len(nodes) == count && !slices.ContainsFunc(nodes, func(n map[string]any) bool { return n["partitions"].(float64) < float64(64/count) }) {
			return
		}
	}
	w.t.Fatalf("the partitions are not shared: %v", nodes)
}

// treeInPhase returns the three agents of a tree when all are in a phase, and holds that
// each line is what the agent's log says. Between the commands an agent may have written:
// then both are read again.
func (w *world) treeInPhase(root, phase string) []map[string]any {
	w.t.Helper()
	var tree []map[string]any
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		tree = w.run("tree", root, "-o", "json").exits(0).objects()
		if len(tree) != 4 || slices.ContainsFunc(tree[:3], func(line map[string]any) bool { return line["phase"] != phase }) {
			continue
		}
		logs := make([][]map[string]any, 3)
		for i, line := range tree[:3] {
			logs[i] = w.run("events", line["agent"].(string), "-o", "json").exits(0).objects()
		}
		if slices.ContainsFunc([]int{0, 1, 2}, func(i int) bool { return tree[i]["events"] != float64(len(logs[i])) }) {
			continue
		}
		sum := 0.0
		for i, line := range tree[:3] {
			is, input, output := logged(logs[i])
			shown := line["usage"].(map[string]any)
			if is != phase || input == 0 || shown["input_tokens"] != input || shown["output_tokens"] != output {
				w.t.Errorf("the tree has %v, the log %s with %v and %v tokens", line, is, input, output)
			}
			sum += input
		}
		if total := tree[3]["usage"].(map[string]any)["input_tokens"]; total != sum {
			w.t.Errorf("the sum is %v of %v", total, sum)
		}
		return tree[:3]
	}
	w.t.Fatalf("not all are %s: %v", phase, tree)
	return nil
}

// logged returns the phase that an agent's events come to, and the tokens of its model.
func logged(events []map[string]any) (phase string, input, output float64) {
	for _, ev := range events {
		switch ev["type"] {
		case "turn.started", "turn.resumed":
			phase = "running"
		case "turn.paused":
			phase = "paused"
		case "turn.completed":
			phase = "idle"
		case "model.completed":
			used := data(ev)["usage"].(map[string]any)
			input += used["input_tokens"].(float64)
			output += used["output_tokens"].(float64)
		}
	}
	return phase, input, output
}

// owners are the nodes that own the agents of a tree now.
func (w *world) owners(tree []map[string]any) (all []string) {
	w.t.Helper()
	for _, line := range tree {
		owner, _ := w.run("show", line["agent"].(string), "-o", "json").exits(0).objects()[0]["owner"].(string)
		all = append(all, owner)
	}
	return all
}

// distinct reports whether all are named, and no two alike.
func distinct(all []string) bool {
	return !slices.Contains(all, "") && len(slices.Compact(slices.Sorted(slices.Values(all)))) == len(all)
}
