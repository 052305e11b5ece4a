package cli_test

import (
	"strings"
	"testing"
)

// supporting is a file with one kind of agent.
const supporting = `agents:
  support:
    model: demo/demo
    instructions: |
      You are a friendly agent.
      Refund only what was paid.
    tools: [calculator]
`

func TestVerify(t *testing.T) { // A82
	w := newWorld(t)
	w.file("reprise.yaml", supporting)
	w.dev()
	for _, agent := range []string{"support/a", "support/b"} {
		w.run("ask", agent, "What is 17 times 3?").exits(0, "51")
	}
	w.part("node", func(t *testing.T, w *world) {
		w.run("verify", "support/a").exits(0, "support/a: equal, 12 events")
		w.run("verify", "--kind", "support").exits(0, "support/b: equal", "2 agents: 2 equal, 0 differ, 0 cannot be read")
		if o := w.run("verify", "support/a", "-o", "json").exits(0).objects(); len(o) != 1 || o[0]["result"] != "equal" || o[0]["agent"] != "support/a" {
			t.Errorf("got %v", o)
		}
		w.run("verify", "support/none").exits(1, "support/none: cannot be read: agent support/none does not exist")
		w.run("verify", "support/a", "support/none", "support/b").exits(1, "support/none: cannot be read: agent support/none does not exist", "support/b: equal",
			"3 agents: 2 equal, 0 differ, 1 cannot be read")
		w.run("verify", "--kind", "none").exits(1, "nothing was verified")
	})
	w.file("terse.yaml", strings.Replace(supporting, "friendly", "terse", 1))
	w.file("bare.yaml", strings.Replace(supporting, "[calculator]", "[clock]", 1))
	w.file("queue.yaml", supporting+"    max_queue: 9\n")
	w.file("other.yaml", strings.Replace(supporting, "support:", "other:", 1))
	w.part("candidate", func(t *testing.T, w *world) {
		w.run("verify", "--all", "--candidate", "reprise.yaml").exits(0, "2 equal")
		w.run("verify", "support/a", "--candidate", "terse.yaml").exits(1, "support/a: differs at event 5", "model.requested", "recorded: ", "now: ",
			`instructions: line 1 "You are a friendly agent.", now line 1 "You are a terse agent."`)
		w.run("verify", "support/a", "--candidate", "bare.yaml").exits(1, "tool calculator: no longer there; tool clock: now added")
		w.run("verify", "support/a", "--candidate", "queue.yaml").exits(0, "equal, 12 events", "max_queue: 1000, now 9")
		w.run("verify", "--all", "--candidate", "other.yaml").exits(1, `support/b: cannot be read: no agent kind is named "support"`, "2 cannot be read")
		w.run("verify", "support/none", "support/a", "--candidate", "reprise.yaml").exits(1, "support/none: cannot be read: agent support/none does not exist", "support/a: equal")
		w.run("verify", "support/a", "--candidate", "gone.yaml").exits(1, "gone.yaml")
		w.run("events", "support/a").exits(0) // which were not touched
		w.run("verify", "support/a").exits(0, "12 events")
	})
	w.part("file", func(t *testing.T, w *world) {
		w.run("export", "--all", "--to", "all.jsonl.gz").exits(0)
		w.run("verify", "--from-file", "all.jsonl.gz", "--candidate", "reprise.yaml").exits(0, "2 equal")
		o := w.run("verify", "--from-file", "all.jsonl.gz", "--candidate", "terse.yaml", "-o", "json").exits(1).objects()
		if d, _ := o[0]["difference"].(map[string]any); len(o) != 2 || d["n"] != 5.0 || d["type"] != "model.requested" {
			t.Errorf("got %v", o)
		}
		w.run("export", "--all", "--to", "redacted.jsonl.gz", "--redact", "17|seventeen").exits(0)
		w.run("verify", "--from-file", "redacted.jsonl.gz", "--candidate", "reprise.yaml").exits(0, "2 equal", "not checked: hashes of texts that were redacted (")
		w.run("verify", "--from-file", "redacted.jsonl.gz", "--candidate", "terse.yaml").exits(1, "2 differ")
		w.run("verify", "--from-file", "reprise.yaml", "--candidate", "reprise.yaml").exits(1, "reprise.yaml: line 1: this is no file that `reprise export` has written")
		w.run("verify", "--from-file", "none", "--candidate", "reprise.yaml").exits(1, "none")
	})
}

func TestVerifyUsage(t *testing.T) {
	w := newWorld(t)
	w.run("verify").exits(2, "name agents, or all of a kind")
	w.run("verify", "support/a", "--all").exits(2, "one of the four")
	w.run("verify", "support").exits(2, "support")
	w.run("verify", "support/a", "support/b", "support/a").exits(2, "support/a is named twice")
	w.run("verify", "--from-file", "all.jsonl.gz").exits(2, "name the definitions with --candidate")
	w.run("verify", "--from-file", "all.jsonl.gz", "--candidate", "x.yaml", "--tenant", "acme").exits(2, "--tenant: leave it out")
	w.run("verify", "support/a", "--candidate", "").exits(2)
}
