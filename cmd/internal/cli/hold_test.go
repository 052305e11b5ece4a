//go:build unix

package cli_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const holding = `
agents:
  worker: {model: demo/demo, tools: [hold]}
  careful: {model: demo/demo, tools: [risky]}
  assistant: {model: demo/demo, tools: [clock, calculator]}
tools:
  hold:
    command: [/bin/sh, ./hold.sh]
    description: Hold until released
    on_unknown: rerun
  risky:
    command: [/bin/sh, ./hold.sh]
    description: Do something risky
    on_unknown: pause
`

// holder is a world with a tool that says on one pipe that it runs, and ends
// when it reads the end of another.
func holder(t *testing.T) *world {
	w := newWorld(t)
	w.file("reprise.yaml", holding)
	w.file("hold.sh", `echo "$REPRISE_IDEMPOTENCY_KEY $REPRISE_ATTEMPT" >started; cat released; echo held`)
	for _, pipe := range []string{"started", "released"} {
		if err := syscall.Mkfifo(filepath.Join(w.dir, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// started waits until the tool runs and returns its key and attempt.
func (w *world) started() string {
	w.t.Helper()
	f, err := os.Open(filepath.Join(w.dir, "started"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// release lets the tool end.
func (w *world) release() {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, "released"), os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func TestTurnSurvivesKill(t *testing.T) {
	w := holder(t)
	node := w.dev()
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
	publish(t, w, "reprise.in.default.worker.main", "use hold", "pub-1")
	first := w.started()
	node.kill()
	w.release() // the program that is left behind

	node = w.dev()
	if !strings.Contains(node.ready, "1 being recovered") {
		t.Errorf("ready line: %s", node.ready)
	}
	second := w.started()
	if key, _, _ := strings.Cut(first, " "); second != key+" 2" {
		t.Errorf("the tool ran as %q, then as %q: want the same key and attempt 2", first, second)
	}
	w.release()
	w.await("worker/main", "turn.completed")
	w.run("ask", "--id", "pub-1", "worker/main", "use hold").exits(0, "held")
	w.run("history", "worker/main").exits(0, "use hold", "call", "hold(", "result", "held")
	w.run("history", "assistant/main").exits(0, "17 times 3", "51")
	w.run("events", "worker/main").exits(0, "agent.activated", "tool.started", "turn.completed")
	owner := w.run("nodes", "-o", "json").exits(0).objects()[0]["node"].(string) // all show where the agent went
	w.run("events", "worker/main").exits(0, "node="+owner, "host=")
	w.run("replay", "worker/main", "--wide").exits(0, "node="+owner, "host=")
	w.run("replay", "worker/main").exits(0, "owner", "node "+owner+" on ", "under way: tool hold(", "completed, attempt 2")
}

func TestPersonDecides(t *testing.T) {
	w := holder(t)
	node := w.dev()
	asking := w.begin("", "ask", "--id", "one", "--timeout", "1m", "careful/c", "use risky")
	w.started()
	w.run("fork", "careful/c", "careful/d").exits(0)
	node.kill()
	w.release() // the program that is left behind
	w.dev()
	w.await("careful/c", "turn.paused")
	call := waiting(t, w, "careful/c")
	w.run("ask", "--id", "one", "careful/c", "use risky").exits(3, "waits for a person", call, "decide careful/c")
	w.run("ask", "careful/c", "and then?").exits(3, "queued behind turn", call)
	w.run("show", "careful/c").exits(0, "paused", "waits for", call, "decide careful/c")
	w.run("doctor").exits(0, "node")
	w.run("__complete", "decide", "careful/c", "").exits(0, call)
	if offered := w.run("__complete", "approve", "careful/c", "").exits(0).out; strings.Contains(offered, call) {
		t.Errorf("approve offers %s", offered)
	}
	w.run("decide", "careful/c", call, "maybe").exits(2, "completed, failed or retry")
	w.run("decide", "careful/c", "other", "failed").exits(1, "other", "effects --outcome unknown` lists")
	w.run("decide", "careful/d", call, "failed").exits(0, "careful/d: settled a call, event ") // the turn of a fork waits to be resumed, too
	w.run("decide", "careful/c", call, "completed", "--result", "it was paid", "--reason", "asked the bank").exits(0, "settled a call of turn")
	w.run("ask", "--id", "one", "careful/c", "use risky").exits(0, "it was paid")
	w.run("events", "careful/c", "-o", "json").exits(0, "tool.unknown", "it was paid")
	asking().exits(1, "the connection to the NATS server was lost", "continues")
}

func waiting(t *testing.T, w *world, agent string) string {
	t.Helper()
	shown := w.run("show", agent, "-o", "json").exits(0).objects()[0]
	list, _ := shown["waiting"].([]any)
	if len(list) != 1 {
		t.Fatalf("waiting: %v", shown)
	}
	call, _ := list[0].(map[string]any)["call"].(string)
	return call
}

func TestInterruptAndBusy(t *testing.T) {
	w := holder(t)
	w.dev()
	for _, verb := range []string{"interrupt", "abort"} {
		agent := "worker/" + verb
		asking := w.begin("", "ask", agent, "use hold")
		w.started()
		w.run("ask", "--policy", "reject", agent, "now").exits(1, "busy", "--policy reject")
		w.run(verb, agent, "--reason", "enough of it").exits(0, "ed turn t4")
		asking().exits(1, "was aborted", "enough of it")
		w.run(verb, agent).exits(0, "nothing changed")
		w.run("events", agent).exits(0, "turn.aborted", "enough of it")
	}
}

// TestTimeout bounds how long ask and chat wait for a turn that another one has begun:
// that it begins may take longer.
func TestTimeout(t *testing.T) {
	w := holder(t)
	w.dev()
	asking := w.begin("", "ask", "--id", "slow", "worker/slow", "use hold")
	w.started()
	bounded := []string{"ask", "--id", "slow", "--timeout", "2s", "worker/slow", "use hold"}
	late := w.run(bounded...)
	for strings.Contains(late.err, "no answer within --timeout") || strings.Contains(late.err, "no NATS server answers") { // it learned of no turn in time
		late = w.run(bounded...)
	}
	late.exits(1, "did not end within 2s; it continues", "events worker/slow --follow")
	behind := []string{"ask", "--id", "behind", "--timeout", "2s", "worker/slow", "hello"}
	late = w.run(behind...)
	for strings.Contains(late.err, "no answer within --timeout") || strings.Contains(late.err, "no NATS server answers") {
		late = w.run(behind...)
	}
	late.exits(1, "did not get its turn of worker/slow within 2s; it is accepted and waits")
	w.release()
	asking().exits(0)

	asking = w.begin("", "ask", "worker/talk", "use hold")
	w.started()
	lines := "Are you there?\nAnd now?\n"
	talking := w.feed(lines, "chat", "--timeout", "2s", "worker/talk") // each turn, not the chat
	for strings.Contains(talking.err, "no NATS server answers") {
		talking = w.feed(lines, "chat", "--timeout", "2s", "worker/talk")
	}
	if r := talking.exits(1, "did not end within 2s; it continues"); strings.Count(r.err, "did not end within") != 2 {
		t.Errorf("not each line was waited for: %s", r.err)
	}
	w.release()
	asking().exits(0)
}
