//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// office is a boss who has a manager, who has a clerk, whose payments a person
// must let.
const family = `
agents:
  boss: {model: demo/demo, tools: [manager]}
  manager: {model: demo/demo, tools: [clerk]}
  clerk: {model: demo/demo, tools: [pay]}
tools:
  manager: {agent: manager, description: Ask the manager}
  clerk: {agent: clerk, description: Ask the clerk}
  pay:
    command: [/bin/sh, -c, 'cat >>paid; echo paid']
    description: Pay an amount
    parameters: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    approval: always
`

// TestTree asks through two agents for what a person must let, shows the tree,
// decides at its root, and finds that all has ended.
func TestTree(t *testing.T) { // A45
	w := newWorld(t)
	w.file("reprise.yaml", family)
	w.dev()
	w.run("ask", "boss/b", "Ask the manager to ask the clerk to pay an amount of 50").
		exits(3, "turn t4 waits for a person (child)", "clerk/sub-", `pay({"amount":50})`)
	if r := w.run("tree", "boss/none").exits(1, "does not exist: nothing was ever sent to it"); r.out != "" {
		t.Errorf("it prints %q", r.out)
	}
	w.run("cancel", "boss/none", "--timer", "morning").exits(1, "does not exist: nothing was ever sent to it", "ls")
	tree := w.run("tree", "boss/b", "-o", "json").exits(0).objects()
	if len(tree) != 4 {
		t.Fatalf("the tree is %v", tree)
	}
	input := 0.0
	for i, kind := range []string{"boss", "manager", "clerk"} {
		line := tree[i]
		if !strings.HasPrefix(line["agent"].(string), kind+"/") || line["depth"] != float64(i) || line["phase"] != "paused" {
			t.Errorf("line %d is %v", i, line)
		}
		if i > 0 && (line["parent"] != tree[i-1]["agent"] || line["status"] != "waiting") {
			t.Errorf("line %d is %v", i, line)
		}
		_, waits := line["waiting"]
		if waits != (kind == "clerk") {
			t.Errorf("line %d is %v", i, line)
		}
		input += line["usage"].(map[string]any)["input_tokens"].(float64)
	}
	if sum := tree[3]; sum["agents"] != 3.0 || sum["usage"].(map[string]any)["input_tokens"] != input || input == 0 {
		t.Errorf("the sum is %v of %v", sum, input)
	}
	w.run("tree", "boss/b").exits(0, "boss/b", "  manager/sub-", "    clerk/sub-", "paused (waiting)", "3 agents")
	w.run("show", "boss/b").exits(0, "asks", "waits for  clerk/sub-")
	clerk := tree[2]["agent"].(string)
	w.run("show", clerk).exits(0, "works for  manager/sub-")
	if all := w.run("approvals", "-o", "json").exits(0).objects(); len(all) != 1 || all[0]["agent"] != clerk {
		t.Errorf("approvals of all: %v", all)
	}
	calls := w.pendingCalls("boss/b")
	if len(calls) != 1 {
		t.Fatalf("the boss lists %v", calls)
	}
	w.run("approve", "boss/b", calls[0]).exits(0, `approved pay({"amount":50}), call `+calls[0]+" of clerk/sub-")
	w.await("boss/b", "turn.completed")
	if paid := w.lines("paid"); len(paid) != 1 {
		t.Errorf("paid %v", paid)
	}
	w.run("tree", "boss/b").exits(0, "idle (completed)")
	w.run("tree", "boss/b", "--at", "10").exits(0, "manager/sub-", "2 agents")
	w.run("tree", "boss/none").exits(1, "does not exist")
	w.run("delete", "boss/b", "--dry-run").exits(0, "would leave the agents that its calls created (1)", tree[1]["agent"].(string))
	if held := w.run("delete", "boss/b", "--dry-run", "-o", "json").exits(0).objects()[0]; held["children"] != 1.0 {
		t.Errorf("it holds %v", held)
	}
}

// The whole tree is deleted while a person is asked for its lowest call, from the
// lowest up; sent again after it was cut short it continues.
func TestDeleteTree(t *testing.T) { // A108
	w := newWorld(t)
	w.file("reprise.yaml", family)
	w.dev()
	ask := func() (manager, clerk string) {
		w.run("ask", "boss/b", "Ask the manager to ask the clerk to pay an amount of 50").exits(3, "waits for a person")
		tree := w.run("tree", "boss/b", "-o", "json").exits(0).objects()
		return tree[1]["agent"].(string), tree[2]["agent"].(string)
	}
	manager, clerk := ask()
	w.run("delete", "boss/b", "--children").exits(2, "--dry-run", "--yes")
	w.run("delete", "boss/b", "--children", "--dry-run").exits(0, "boss/b would lose", manager+" would lose", clerk+" would lose", "3 agents with")
	dry := w.run("delete", "boss/b", "--children", "--dry-run", "-o", "json").exits(0).objects()
	if len(dry) != 3 || dry[0]["agent"] != clerk || dry[2]["agent"] != "boss/b" {
		t.Errorf("would go: %v", dry)
	}
	w.run("ls").exits(0, "boss/b", manager, clerk)
	deleted := w.run("delete", "boss/b", "--children", "--yes", "--reason", "she asked for it").exits(0, clerk+": deleted", manager+": deleted", "boss/b: deleted").out
	if strings.Index(deleted, clerk) > strings.Index(deleted, manager) || strings.Index(deleted, manager) > strings.Index(deleted, "boss/b:") {
		t.Errorf("not from the lowest up:\n%s", deleted)
	}
	w.run("ls").exits(0, "no agents")
	w.run("delete", "boss/b", "--children", "--yes").exits(1, "was deleted")
	w.run("delete", "boss/none", "--children", "--yes").exits(1, "does not exist")
	w.run("delete", "boss/none", "--children", "--dry-run").exits(1, "does not exist")

	manager, clerk = ask()
	w.run("delete", clerk, "--yes").exits(0) // and then it was cut short
	w.run("delete", "boss/b", "--children", "--yes", "--id", "d1").exits(0, manager+": deleted", "boss/b: deleted")
	w.run("ls").exits(0, "no agents")
	w.run("delete", "boss/b", "--children", "--yes", "--id", "d1").exits(0, "applied before")
}
