//go:build unix

package cli_test

import (
	"slices"
	"strings"
	"testing"
)

// queued is what show lists as waiting for a turn.
func queued(w *world, agent string) []any {
	w.t.Helper()
	list, _ := w.run("show", agent, "-o", "json").exits(0).objects()[0]["queue"].([]any)
	return list
}

func TestRejectLeavesNoFact(t *testing.T) { // A9
	w := holder(t)
	w.dev()
	asking := w.begin("", "ask", "worker/a", "use hold")
	w.started()
	before := len(w.run("events", "worker/a", "-o", "json").exits(0).objects())
	w.run("ask", "--policy", "reject", "worker/a", "now").exits(1, "busy with turn t4", "leave out --policy reject")
	if after := w.run("events", "worker/a", "-o", "json").exits(0).objects(); len(after) != before {
		t.Errorf("%d events became %d", before, len(after))
	}
	w.release()
	asking().exits(0, "held")
	w.run("ask", "--policy", "reject", "worker/a", "hello").exits(0)
}

func TestCancel(t *testing.T) { // A10
	w := holder(t)
	w.dev()
	asking := w.begin("", "ask", "worker/a", "use hold", "--id", "first")
	w.started()
	taken := w.begin("", "ask", "worker/a", "use hold for the second time", "--id", "second")
	w.awaitInput("worker/a", "second")
	kept := w.begin("", "ask", "worker/a", "hello", "--id", "third")
	w.awaitInput("worker/a", "third")
	if q := queued(w, "worker/a"); !slices.Equal(q, []any{"second", "third"}) {
		t.Errorf("queue: %v", q)
	}
	w.run("show", "worker/a").exits(0, "second", "third")
	w.run("cancel", "worker/a").exits(2, "--input", "--timer", "--all", "reprise interrupt worker/a", "reprise abort worker/a")
	w.run("cancel", "worker/a", "second").exits(2)
	w.run("cancel", "worker/a", "--input", "second", "--all").exits(2, "exclude one another")
	w.run("cancel", "worker/none", "--input", "x").exits(1)
	w.run("cancel", "worker/a", "--input", "nobody").exits(1, "no input", "nobody")
	w.run("cancel", "worker/a", "--input", "first").exits(1, "has begun", "interrupt or abort")
	w.run("cancel", "worker/a", "--input", "second", "--id", "w", "--reason", "no longer wanted").exits(0, "cancelled input second")
	w.run("cancel", "worker/a", "--input", "second", "--id", "w").exits(0, "applied before")
	taken().exits(1, "the input was cancelled: no longer wanted")
	if q := queued(w, "worker/a"); !slices.Equal(q, []any{"third"}) {
		t.Errorf("queue: %v", q)
	}
	w.run("cancel", "worker/a", "--all", "-o", "json").exits(0, `"agent":"worker/a"`)
	kept().exits(1, "cancelled")
	w.release()
	asking().exits(0, "held")
	for _, text := range []string{"second", "hello"} {
		if r := w.run("history", "worker/a").exits(0); strings.Contains(r.out, text) {
			t.Errorf("the model sees %q, which was cancelled:\n%s", text, r.out)
		}
	}
}

func TestSteer(t *testing.T) { // A2 A3
	w := holder(t)
	w.dev()
	w.run("ask", "--policy", "steer", "assistant/idle", "What is 6 times 7?").exits(0, "42")
	asking := w.begin("", "ask", "worker/a", "use hold")
	w.started()
	steering := w.begin("", "ask", "--policy", "steer", "worker/a", "and be quick", "--id", "j", "-o", "json")
	w.awaitInput("worker/a", "j")
	w.run("show", "worker/a").exits(0, "steered", "j")
	w.release()
	asking().exits(0)
	lines := steering().exits(0).objects()
	if lines[0]["type"] != "input.accepted" || data(lines[0])["disposition"] != "steered" || lines[0]["turn"] != "t4" {
		t.Errorf("the first line of a steered ask: %v", lines[0])
	}
	if last := lines[len(lines)-1]; last["type"] != "turn.completed" || last["turn"] != "t4" {
		t.Errorf("the last line of a steered ask: %v", last)
	}
	var order []string
	for _, item := range w.run("history", "worker/a", "-o", "json").exits(0).objects() {
		name, _ := item["role"].(string)
		order = append(order, name+item["type"].(string))
	}
	if got := strings.Join(order[:4], " "); got != "usermessage function_call function_call_output usermessage" {
		t.Errorf("history: %s", got)
	}
}

func TestInterruptPolicy(t *testing.T) {
	w := holder(t)
	w.dev()
	first := w.begin("", "ask", "worker/a", "use hold")
	w.started()
	second := w.begin("", "ask", "worker/a", "hello", "--id", "second")
	w.awaitInput("worker/a", "second")
	w.run("ask", "--policy", "interrupt", "worker/a", "hello at once", "--id", "third").exits(0)
	first().exits(1, "turn t4 was aborted by input")
	second().exits(0)
	var inputs []any
	for _, ev := range of(w.run("events", "worker/a", "-o", "json").exits(0).objects(), "turn.started") {
		ids, _ := data(ev)["inputs"].([]any)
		inputs = append(inputs, ids...)
	}
	if !slices.Equal(inputs[1:], []any{"third", "second"}) {
		t.Errorf("turns began in the order %v", inputs)
	}
}

func TestAbortLetsTheQueueGoOn(t *testing.T) { // A12
	w := holder(t)
	w.dev()
	first := w.begin("", "ask", "worker/a", "use hold")
	w.started()
	second := w.begin("", "ask", "worker/a", "hello", "--id", "second")
	w.awaitInput("worker/a", "second")
	w.run("abort", "worker/a", "--reason", "wrong agent").exits(0, "aborted turn t4")
	first().exits(1, "aborted by abort: wrong agent")
	second().exits(0)
	for _, item := range w.run("history", "worker/a", "-o", "json").exits(0).objects() {
		if item["role"] == "developer" {
			t.Errorf("abort left a note: %v", item)
		}
	}
}

func TestClear(t *testing.T) { // A13
	w := holder(t)
	w.dev()
	w.run("set-state", "worker/a", `{"lang":"de"}`).exits(0)
	w.run("ask", "worker/a", "hello", "--id", "old").exits(0)
	running := w.begin("", "ask", "worker/a", "use hold")
	w.started()
	steered := w.begin("", "ask", "--policy", "steer", "worker/a", "be quick", "--id", "j")
	w.awaitInput("worker/a", "j")
	waiting := w.begin("", "ask", "worker/a", "hello again", "--id", "q")
	w.awaitInput("worker/a", "q")
	w.run("clear", "worker/a", "--id", "c", "--reason", "start over").exits(0, "cleared; turn", "was aborted")
	w.run("clear", "worker/a", "--id", "c").exits(0, "applied before")
	running().exits(1, "aborted by clear")
	steered().exits(1, "aborted by clear")
	waiting().exits(1, "the input was dropped by clear: start over")
	if r := w.run("history", "worker/a", "-o", "json").exits(0); r.out != "" {
		t.Errorf("history after clear: %s", r.out)
	}
	w.run("state", "worker/a", "-o", "json").exits(0, "{}")
	if q := queued(w, "worker/a"); len(q) != 0 {
		t.Errorf("queue after clear: %v", q)
	}
	w.run("ask", "worker/a", "hello", "--id", "new").exits(0)
	if items := w.run("history", "worker/a", "-o", "json").exits(0).objects(); len(items) != 2 {
		t.Errorf("history of the turn after clear: %v", items)
	}
	w.run("ask", "worker/a", "hello", "--id", "old").exits(0) // its id is spent: its first answer
	if n := len(of(w.run("events", "worker/a", "-o", "json").exits(0).objects(), "turn.started")); n != 3 {
		t.Errorf("%d turns, want 3", n)
	}
	w.run("clear", "worker/none").exits(1)
}
