package cli_test

import (
	"fmt"
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
	lookTurn(t, w)
	lookRequest(t, w)

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

func TestCompletion(t *testing.T) {
	w := newWorld(t)
	w.dev()
	w.run("ask", "support/t1", "Refund 9900 cents for order 7").exits(3)
	for w.run("ls", "-o", "json").exits(0).out == "" { // the list follows the log
		if t.Context().Err() != nil {
			t.Fatal("no agent is listed")
		}
	}
	for want, args := range map[string][]string{
		"support/t1":          {"show", "support/"},
		"parrot/":             {"ask", "p"},
		"assistant/":          {"diff", "support/t1", "a"},
		"support/t1\tpaused":  {"verify", "assistant/a", "support/"},
		"call_":               {"approve", "support/t1", ""},
		"\trefund({":          {"why", "support/t1", "call_"},
		"t4":                  {"interrupt", "support/t1", "--turn", ""},
		"refund":              {"effects", "--tool", ""},
		"assistant\nparrot\n": {"ls", "--kind", ""},
	} {
		w.run(append([]string{"__complete"}, args...)...).exits(0, want)
	}
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

func lookRequest(t *testing.T, w *world) {
	w.run("request", "assistant/main", "6").exits(0, "turn t4, step 1, attempt 1, call m5, event 5", "demo/demo", "yes, the hash that was recorded", "calculator", `"expression"`, "17 times 3")
	for _, n := range []string{"10", "11", "12"} { // of the second call
		o := w.run("request", "assistant/main", n, "-o", "json").exits(0).objects()
		if len(o) != 1 || o[0]["n"] != 10.0 || o[0]["step"] != 2.0 || o[0]["matches"] != true || len(o[0]["items"].([]any)) != 3 {
			t.Errorf("request of event %s: got %v, want the call of event 10 with 3 items", n, o)
		}
		wantKeys(t, o[0], "agent", "at", "attempt", "call", "definition", "hash", "instructions", "items", "matches", "model", "n", "settings", "step", "tools", "turn")
	}
	w.run("request", "assistant/main", "3").exits(1, "event 3 of agent assistant/main (input.accepted) belongs to no model call")
	w.run("request", "assistant/main", "13").exits(1, "(state.patched) belongs to no model call", "was requested by event 10")
	w.run("request", "assistant/main", "5000").exits(1, "no event 5000")
	w.run("request", "assistant/none", "5").exits(1, "does not exist", "ls")
	w.run("request", "assistant/main", "0").exits(2, "write the number of an event")
	w.run("request", "assistant/main", "m5").exits(2, "write the number of an event")
	w.run("request", "assistant/main", "5", "6").exits(2, "one too many")
}

func lookTurn(t *testing.T, w *world) {
	w.run("turns", "assistant/main").exits(0, "t4", "completed", "QUESTION", "17 times 3?", "17 times 3 is 51.")
	w.run("turns", "assistant/main", "--failed").exits(0, "no turns")
	w.run("turns", "assistant/main", "--tail", "1", "--limit", "1", "-o", "json").exits(0, `"turn":"t4"`, `"question":"What is 17 times 3?"`)
	w.run("turn", "assistant/main", "t4").exits(0, "completed", "What is 17 times 3?", "step 1", "demo/demo", `calculator({"expression":"17 * 3"}): completed`, "51", "step 2", "17 times 3 is 51.", "2 steps")
	o := w.run("turn", "assistant/main", "t4", "-o", "json").exits(0).objects()
	if len(o) != 1 {
		t.Fatalf("turn: got %d objects, want 1", len(o))
	}
	wantKeys(t, o[0], "agent", "turn", "inputs", "phase", "started", "started_at", "ended", "ended_at", "steps", "limits", "usage", "asked", "done", "output")
	w.run("turn", "assistant/main", "t5").exits(1, "has no turn t5", "turns assistant/main` lists")
	w.run("turn", "assistant/main", "").exits(2, "TURN is empty")

	numbers := func(args ...string) (text string) {
		for _, o := range w.run(append(args, "assistant/main", "-o", "json")...).exits(0).objects() {
			text += fmt.Sprint(o["n"], " ")
		}
		return text
	}
	for want, got := range map[string]string{
		"13 14 ":                  numbers("events", "--tail", "2"),
		"3 4 5 6 7 8 9 10 11 12 ": numbers("events", "--turn", "t4"),
		"11 ":                     numbers("history", "--tail", "1"),
		"4 6 9 11 ":               numbers("history", "--turn", "t4"),
		"3 4 5 6 7 8 9 10 11 12":  strings.TrimSpace(numbers("replay", "--turn", "t4", "--wide")),
		"7 ":                      numbers("effects", "--turn", "t4"),
		"3 4 5 7 10 ":             numbers("replay", "--turn", "t4"),
	} {
		if got != want {
			t.Errorf("got events %q, want %q", got, want)
		}
	}
	for _, view := range []string{"events", "history", "replay"} {
		w.run(view, "assistant/main", "--turn", "t5").exits(1, `nothing to show of turn "t5"`)
	}
	w.run("effects", "assistant/main", "--turn", "t5").exits(1, "has no turn t5")
	w.run("effects", "assistant/main", "--turn", "t4", "--tool", "other").exits(0, "no such calls")
	w.run("effects", "--turn", "t5").exits(2, "name the agent")
	w.run("events", "assistant/main", "--tail", "0").exits(2, "must be positive")
	w.run("events", "assistant/main", "--tail", "1", "--from", "2").exits(2, "from", "tail")

	if got := numbers("events", "--follow", "--limit", "1"); got != "1 " {
		t.Errorf("events --follow of 14 events: got %q first, want 1", got)
	}
	w.run("ask", "assistant/main", "What is 5 times 3?").exits(0)
	all := len(w.run("events", "assistant/main", "-o", "json").exits(0).objects())
	if got := numbers("events", "--follow", "--limit", "1"); got != fmt.Sprint(all-19, " ") {
		t.Errorf("events --follow of %d events: got %q first, want the newest 20", all, got)
	}
}

func lookState(t *testing.T, w *world) {
	w.run("set-state", "assistant/main", `{"lang":"de","deep":{"a":1}}`, "--reason", "they are German").exits(0, "changed the state")
	w.feed(`{"deep":null}`, "set-state", "assistant/main", "-", "-o", "json").exits(0, `"agent":"assistant/main"`, `"n":`)
	if r := w.run("state", "assistant/main", "-o", "json").exits(0); r.out != "{\"lang\":\"de\"}\n" {
		t.Errorf("state: %q", r.out)
	}
	w.run("state", "assistant/main", "--at", "13").exits(0, `"a": 1`)
	w.run("set-state", "assistant/main", `[1]`).exits(2, "JSON object")

	w.run("replay", "assistant/main").exits(0, "input       What is 17 times 3?", "turn t4  completed  17 times 3 is 51.", `  tool        calculator({"expression":"17 * 3"})  completed  51`, `state       {"lang":"de"`, "they are German")
	w.run("replay", "assistant/main", "--wide").exits(0, "+ user: What is 17 times 3?", "turn t4 completed", `state: lang: "de" added`, "they are German")
	for _, o := range w.run("replay", "assistant/main", "--from", "4", "--at", "6", "--wide", "-o", "json").exits(0).objects() {
		if n := o["n"].(float64); n < 4 || n > 6 {
			t.Errorf("replay --from 4 --at 6 shows event %v", n)
		}
	}
	w.run("replay", "assistant/main", "--from", "4", "--at", "3").exits(2)
	w.run("replay", "assistant/main", "--from", "999").exits(1, "there is no event 999")
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
