//go:build unix

package cli_test

import (
	"fmt"
	"strings"
	"testing"
)

// newest is the number of an agent's newest event of a type.
func (w *world) newest(agent, eventType string) string {
	w.t.Helper()
	all := of(w.run("events", agent, "-o", "json").exits(0).objects(), eventType)
	if len(all) == 0 {
		w.t.Fatalf("%s has no %s", agent, eventType)
	}
	return fmt.Sprint(all[len(all)-1]["n"])
}

// A fork continues by itself, also after a restart; its tools are dry until they are used, and its parent
// is deleted with it alone.
func TestFork(t *testing.T) { // A81
	w := newWorld(t)
	node := w.dev()
	w.run("ask", "assistant/a", "What is 17 times 3?").exits(0, "51")
	at := w.newest("assistant/a", "turn.completed")
	w.run("ask", "assistant/a", "What is 5 times 5?").exits(0, "25")

	w.run("fork", "assistant/a", "assistant/b", "--at", at, "--reason", "what if").exits(0, "assistant/b: forked from assistant/a at event "+at+"; its tools are dry")
	w.run("forks", "assistant/a").exits(0, "assistant/b", at, "begun", "what if")
	w.run("show", "assistant/b").exits(0, "fork of", "assistant/a at event "+at, "use-tools assistant/b")
	w.run("diff", "assistant/a", "assistant/b").exits(0, "have the same events up to "+at, "forked  from default/assistant/a at event "+at+": what if", "What is 5 times 5?  started", "calls calculator")
	w.run("diff", "assistant/a", "assistant/b", "--limit", "1").exits(0, "What is 5 times 5?", "and more: `", "replay assistant/a --from ")
	w.run("diff", "assistant/a", "assistant/b", "--wide", "--limit", "1").exits(0, "input.accepted", "agent.forked", "events assistant/a --from ")
	if d := w.run("diff", "assistant/b", "assistant/a", "--limit", "1", "-o", "json").exits(0).objects(); len(d) != 1 || fmt.Sprint(d[0]["last"]) != at {
		t.Errorf("diff: %v", d)
	}
	w.run("ask", "assistant/b", "What is 5 times 5?").exits(0, "25") // as on record
	w.run("effects", "--where", "expression=5 * 5").exits(0, "assistant/a ", "assistant/b ", "completed, dry")
	if effects := w.run("effects", "assistant/a").exits(0).out; strings.Contains(effects, "dry") {
		t.Errorf("a call of the parent is dry: %s", effects)
	}
	dry := w.run("effects", "assistant/b", "-o", "json").exits(0).objects()[1]
	w.run("why", "assistant/b", fmt.Sprint(dry["n"])).exits(0, "calculator was not called: the tools of the fork are dry")
	w.run("replay", "assistant/b").exits(0, "completed, dry")
	w.run("export", "assistant/b", "--to", "-", "--as", "markdown").exits(0, "Outcome: completed, dry")
	w.run("traces", "assistant/b", "-o", "json").exits(0, "reprise.dry")
	w.run("ask", "assistant/b", "What is 6 times 7?").exits(3, "no recorded result", "--result …` (or failed) gives it a result", "use-tools assistant/b`, then `")
	node.kill()

	w.dev()
	w.run("use-tools", "assistant/b").exits(0, "uses its tools")
	calls := of(w.run("events", "assistant/b", "-o", "json").exits(0).objects(), "tool.unknown")
	w.run("decide", "assistant/b", data(calls[0])["call"].(string), "retry").exits(0)
	w.until("assistant/b", "its answer", func(ev map[string]any) bool { return data(ev)["output"] == "6 times 7 is 42." })
	w.run("history", "assistant/b").exits(0, "17 times 3 is 51", "6 times 7 is 42")
	if last := w.run("effects", "assistant/b", "-o", "json").exits(0).objects(); last[len(last)-1]["dry"] != nil {
		t.Errorf("the call that was run after use-tools is %v", last[len(last)-1])
	}
	if history := w.run("history", "assistant/a").exits(0).out; strings.Contains(history, "6 times 7") {
		t.Errorf("the parent has what its fork did later: %s", history)
	}
	w.run("clear", "assistant/b").exits(0)
	if history := w.run("history", "assistant/b").exits(0, "17 times 3 is 51").out; strings.Contains(history, "6 times 7") {
		t.Errorf("a cleared fork has more than its baseline: %s", history)
	}

	w.run("fork", "assistant/a", "assistant/x", "--set", "tools=clock", "--set", "instructions=Be brief.").exits(0)
	w.run("show", "assistant/x").exits(0, `with instructions "Be brief.", tools clock`)
	w.run("ask", "assistant/x", "What is 6 times 7?").exits(0, "clock")
	w.run("delete", "assistant/x", "--yes").exits(0)

	w.run("delete", "assistant/a", "--yes").exits(1, "has forks that begin with its events, such as assistant/b", "--cascade")
	w.run("fork", "assistant/b", "assistant/c").exits(0)
	w.run("delete", "assistant/a", "--children", "--yes").exits(1, "has forks that begin with its events, such as assistant/c", "--cascade")
	w.run("delete", "assistant/a", "--cascade", "--detach", "--yes").exits(2, "give one of the two")
	w.run("delete", "assistant/a", "--children", "--cascade", "--dry-run").exits(0, "assistant/c would lose", "assistant/b would lose", "assistant/a would lose")
	w.run("delete", "assistant/a", "--cascade", "--dry-run").exits(0, "assistant/c would lose", "assistant/b would lose", "assistant/a would lose")
	w.run("delete", "assistant/a", "--cascade", "--yes", "--id", "d").exits(0, "assistant/c: deleted", "assistant/b: deleted", "assistant/a: deleted")
	for _, agent := range []string{"assistant/a", "assistant/b", "assistant/c"} {
		w.run("show", agent).exits(0, "deleted")
	}
	for _, how := range []string{"--cascade", "--detach"} { // said again, as where it was cut short at its end
		w.run("delete", "assistant/a", how, "--yes", "--id", "d").exits(0, "applied before")
		w.run("delete", "assistant/a", how, "--dry-run").exits(0, "is deleted")
	}
	w.run("doctor", "--deep").exits(0)
}

// A turn in which two agents part is shown for each as it continued.
func TestDiffInsideTurn(t *testing.T) { // A81
	w := newWorld(t)
	w.dev()
	w.run("ask", "support/a", "Refund 9900 cents for order 7").exits(3)
	w.run("fork", "support/a", "support/b").exits(0)
	w.run("abort", "support/a").exits(0)
	_, sides, _ := strings.Cut(w.run("diff", "support/a", "support/b").exits(0, "have the same events up to").out, "support/a\n")
	of, other, found := strings.Cut(sides, "support/b\n")
	if !found || !strings.Contains(of, "turn t4  aborted") || !strings.Contains(other, "approval    refund  waiting") || strings.Contains(sides, "Refund 9900") {
		t.Errorf("got %s", sides)
	}
}

// A fork that cannot be made is refused, and nothing is done.
func TestForkRefused(t *testing.T) {
	w := newWorld(t)
	w.dev()
	w.run("ask", "parrot/a", "hello").exits(0)
	w.run("ask", "parrot/b", "hello").exits(0)
	before := w.run("events", "parrot/a").exits(0).out
	w.run("fork", "parrot/a", "parrot/b").exits(1, "agent parrot/b exists")
	w.run("fork", "parrot/a", "parrot/c", "--at", "9999").exits(1, "there is no event 9999")
	w.run("fork", "parrot/none", "parrot/c").exits(1, "does not exist")
	w.run("fork", "parrot/a", "nobody/c").exits(1, "no agent kind is named")
	w.run("fork", "parrot/a", "other/parrot/c").exits(1, "another tenant")
	w.run("fork", "parrot/a", "c").exits(1, "kind/key")
	w.run("fork", "parrot/a", "parrot/c", "--set", "tools=fly").exits(1, "kind parrot has no tool", "fly", "it has echo")
	w.run("fork", "parrot/a", "parrot/c", "--set", "model=none/x").exits(1, "none")
	w.run("fork", "parrot/a", "parrot/c", "--set", "model").exits(2, "NAME=VALUE")
	w.run("fork", "parrot/a", "parrot/c", "--set", "mood=good").exits(2, "what can be set is model, instructions and tools")
	w.run("fork", "parrot/a", "parrot/c", "--set", "tools=").exits(2, "NAME=VALUE")
	w.run("fork", "parrot/a", "parrot/c", "--set", "tools=fly,").exits(2, "one of the tools has no name")
	w.run("fork", "parrot/a", "parrot/c", "--set", "model=a/b", "--set", "model=c/d").exits(2, `--set "model=a/b" and --set "model=c/d" both set model`)
	w.run("fork", "parrot/a", "parrot/c", "--set", "instructions=@none").exits(2, "no such file")
	w.run("use-tools", "parrot/a").exits(0, "nothing changed: the agent is not a fork")
	w.run("diff", "parrot/a", "parrot/none").exits(1, "does not exist")
	w.run("diff", "parrot/a", "parrot/b").exits(0, "have no event in common")
	w.run("forks", "parrot/a").exits(0, "no forks were made of parrot/a")
	w.run("show", "parrot/c").exits(1, "does not exist")
	if after := w.run("events", "parrot/a").exits(0).out; !strings.HasPrefix(after, before) || strings.Contains(after, "fork.requested") {
		t.Errorf("a fork that was refused is on record: %s", after)
	}
	// Inside of a step the owner of the fork refuses it; that is on record.
	w.run("fork", "parrot/a", "parrot/d", "--at", "4").exits(1, "recorded in one step")
	w.run("show", "parrot/d").exits(1, "does not exist")
	if letters := w.run("dlq", "ls").exits(0).out; strings.Contains(letters, "recorded in one step") {
		t.Errorf("what the parent has on record is a dead letter, too: %s", letters)
	}
	w.run("delete", "parrot/a", "--yes").exits(0)
}

// A fork stays with all that it has when its parent is deleted, if it was detached, and a fork of it
// does, too.
func TestDetach(t *testing.T) { // A81
	w := newWorld(t)
	node := w.dev()
	w.run("ask", "assistant/a", "What is 17 times 3?").exits(0, "51")
	at := w.newest("assistant/a", "turn.completed")
	w.run("fork", "assistant/a", "assistant/b", "--use-tools").exits(0)
	w.run("ask", "assistant/b", "What is 17 times 3?").exits(0, "51")
	w.run("fork", "assistant/b", "assistant/c").exits(0)
	w.run("fork", "assistant/b", "assistant/d", "--at", at).exits(1, "fork assistant/a at "+at)
	history := w.run("history", "assistant/c").exits(0).out

	w.run("delete", "assistant/a", "--detach", "--dry-run").exits(0, "assistant/b would copy the events up to "+at, "assistant/a would lose")
	w.run("show", "assistant/b").exits(0, "assistant/a at event "+at)
	w.run("delete", "assistant/a", "--detach", "--yes").exits(0, "assistant/b: detached", "assistant/a: deleted")
	w.run("ask", "assistant/a", "What is 2 times 2?").exits(0, "4") // another agent
	w.run("delete", "assistant/a", "--yes").exits(0, "assistant/a: deleted")
	w.run("show", "assistant/b").exits(0, "assistant/a at event "+at+", detached from it")
	for _, name := range []string{"assistant/b", "assistant/c"} {
		w.run("verify", name).exits(0)
		w.run("why", name, at).exits(0)
		w.run("replay", name, "--plain").exits(0, "17 times 3")
		w.run("export", name, "--to", name[10:]+".jsonl").exits(0)
		w.run("events", name, "--from", "2").exits(0, "17 times 3")
	}
	w.run("doctor", "--deep").exits(0)
	w.run("import", "b.jsonl", "--as", "assistant/i").exits(0)
	w.run("history", "assistant/i").exits(0, "17 times 3 is 51")
	w.run("verify", "assistant/i").exits(0)
	if got := w.run("history", "assistant/c").exits(0).out; got != history {
		t.Errorf("got history %s, want %s", got, history)
	}
	w.run("fork", "assistant/b", "assistant/e", "--at", at).exits(0)
	w.run("history", "assistant/e").exits(0, "17 times 3 is 51")
	w.run("delete", "assistant/b", "--detach", "--yes").exits(0, "assistant/c: detached", "assistant/e: detached", "assistant/b: deleted")
	node.kill()
	w.dev()
	w.run("ask", "assistant/c", "What is 6 times 7?").exits(3, "a detached fork has no recorded results")
	w.run("delete", "assistant/c", "--yes").exits(0)
}

// What a fork has of a parent that was deleted is found and listed as long as the fork is there, by an index
// that is built again, too; what the parent's models used is not. A fork of the fork gets it in its turn.
func TestDetachIsFound(t *testing.T) { // A81, A87
	w := newWorld(t)
	w.file("reprise.yaml", exportable)
	node := w.node("dev", "--listen", "127.0.0.1:0")
	w.run("ask", "assistant/a", "please use the dump tool").exits(0)
	w.run("fork", "assistant/a", "assistant/b").exits(0)
	w.run("ask", "assistant/b", "What is 2 times 2?").exits(0)
	w.run("fork", "assistant/b", "assistant/c").exits(0)
	check := func(fork string) {
		t.Helper()
		for _, row := range w.listed(fork, 1) {
			if row["before_fork"] != true {
				t.Errorf("got %v, want it marked as from before the fork", row)
			}
		}
		w.run("effects").exits(0, "completed, before the fork")
		w.run("find", "please", "dump").exits(0, "input, before the fork")
		w.run("doctor", "--deep", fork).exits(0)
	}
	w.listed("assistant/b", 0)
	w.run("delete", "assistant/a", "--detach", "--yes").exits(0)
	w.listed("assistant/a", 0)
	w.listed("assistant/c", 0)
	check("assistant/b")
	used := w.run("usage", "-o", "json").exits(0).out
	node.kill()
	w.dropIndex()
	w.node("dev", "--listen", "127.0.0.1:0")
	check("assistant/b")
	if got := w.run("usage", "-o", "json").exits(0).out; got != used {
		t.Errorf("usage: got %s of an index built again, want %s", got, used)
	}
	w.run("delete", "assistant/b", "--detach", "--yes").exits(0)
	w.listed("assistant/b", 0)
	check("assistant/c")
	w.run("delete", "assistant/c", "--yes").exits(0)
	w.listed("assistant/c", 0)
}
