package cli_test

import (
	"strings"
	"testing"
)

func TestLook(t *testing.T) {
	w := newWorld(t)
	w.dev()
	w.run("ls").exits(0, "no agents")
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0)

	events := w.run("events", "assistant/main", "-o", "json").exits(0).objects()
	for i, o := range events {
		if o["n"] != float64(i+1) {
			t.Errorf("event %d has number %v", i+1, o["n"])
		}
	}
	w.run("events", "assistant/main").exits(0, "input.accepted", "17 times 3", "turn.completed")
	if r := w.run("events", "assistant/main", "--from", "3", "--limit", "2", "-o", "json").exits(0).objects(); len(r) != 2 || r[0]["n"] != 3.0 {
		t.Errorf("--from 3 --limit 2: %v", r)
	}
	w.run("events", "assistant/none").exits(1, "does not exist", "ls")
	w.run("events", "assistant/main", "--limit", "-1").exits(2)

	lookHistory(t, w)
	lookState(t, w)

	wantKeys(t, w.run("show", "assistant/main", "-o", "json").exits(0).objects()[0], "agent", "phase", "events", "epoch", "owner", "updated", "queue", "waiting")
	w.run("show", "assistant/main").exits(0, "idle", "assistant/main")
	w.run("show", "assistant/none").exits(1, "does not exist")
	for listed := false; !listed; { // the list follows the log
		for _, row := range w.run("ls", "-o", "json").exits(0).objects() {
			if listed = row["agent"] == "assistant/main" && row["phase"] == "idle"; listed {
				wantKeys(t, row, "agent", "phase", "events", "epoch", "owner", "updated")
			}
		}
	}
	w.run("ls", "--kind", "assistant", "--phase", "idle").exits(0, "AGENT", "assistant/main")
	w.run("ls", "--phase", "asleep").exits(2, "idle, running, paused or deleted")
}

func lookHistory(t *testing.T, w *world) {
	history := w.run("history", "assistant/main", "-o", "json").exits(0).objects()
	types := make([]string, len(history))
	for i, o := range history {
		types[i] = o["type"].(string)
	}
	if got := strings.Join(types, " "); got != "message function_call function_call_output message" {
		t.Errorf("history: %s", got)
	}
	if c := history[1]; c["name"] != "calculator" || c["call_id"] == nil || c["arguments"] == nil || c["n"] == nil {
		t.Errorf("call: %v", c)
	}
	if r := w.run("history", "assistant/main", "--at", "5", "-o", "json").exits(0).objects(); len(r) != 1 {
		t.Errorf("history at 5: %v", r)
	}
	w.run("history", "assistant/main", "--at", "5000").exits(1, "no event 5000")
}

func lookState(t *testing.T, w *world) {
	w.run("set-state", "assistant/main", `{"lang":"de","deep":{"a":1}}`, "--reason", "they are German").exits(0, "changed the state")
	w.feed(`{"deep":null}`, "set-state", "assistant/main", "-", "-o", "json").exits(0, `"agent":"assistant/main"`, `"n":`)
	if r := w.run("state", "assistant/main", "-o", "json").exits(0); r.out != "{\"lang\":\"de\"}\n" {
		t.Errorf("state: %q", r.out)
	}
	w.run("state", "assistant/main", "--at", "13").exits(0, `"a": 1`)
	w.run("set-state", "assistant/main", `[1]`).exits(2, "JSON object")

	w.run("replay", "assistant/main").exits(0, "+ user: What is 17 times 3?", "turn t4 completed", `state: lang: "de" added`, "they are German")
	for _, o := range w.run("replay", "assistant/main", "--from", "4", "--at", "6", "-o", "json").exits(0).objects() {
		if n := o["n"].(float64); n < 4 || n > 6 {
			t.Errorf("replay --from 4 --at 6 shows event %v", n)
		}
	}
	w.run("replay", "assistant/main", "--from", "4", "--at", "3").exits(2)
}

func TestDeadLetters(t *testing.T) {
	w := newWorld(t)
	w.dev()
	w.run("dlq", "ls").exits(0, "no dead letters")
	sub := subscribe(t, w, "reprise.dlq.>")
	w.run("send", "nokind/x", "lost words").exits(0)
	if _, err := sub.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for w.run("dlq", "ls", "-o", "json").exits(0).out == "" { // what is published may be stored a moment later
		if t.Context().Err() != nil {
			t.Fatal("no dead letter is kept")
		}
	}
	w.run("dlq", "ls").exits(0, "unknown_kind", "reprise.in.default.nokind.x")
	o := w.run("dlq", "ls", "-o", "json").exits(0).objects()
	if len(o) != 1 || o[0]["code"] != "unknown_kind" {
		t.Errorf("dlq ls: %v", o)
	}
	w.run("dlq", "show", "1").exits(0, "lost words", "nokind")
	w.run("dlq", "show", "1", "-o", "json").exits(0, `"seq":1`)
	w.run("dlq", "show", "2").exits(1, "no dead letter 2")
	w.run("dlq", "retry", "2").exits(1, "no dead letter 2")
	w.run("dlq", "retry", "x").exits(2, "write its number")
	w.run("dlq", "retry", "1").exits(0, "sent again to reprise.in.default.nokind.x")
	w.run("dlq", "show", "first").exits(2, "number")
	w.run("dlq", "ls", "--tenant", "other").exits(0, "no dead letters")
	w.run("doctor").exits(0, "dead letters", "dlq ls")
	checks := w.run("doctor", "-o", "json").exits(0).objects()[0]
	if checks["ok"] != true {
		t.Errorf("doctor: %v", checks)
	}
}
