//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gated is a clerk that notes unasked and pays if a person lets it; each tool
// writes its arguments into a file.
const gated = `
agents:
  clerk: {model: demo/demo, tools: [note, pay]}
tools:
  note:
    command: [/bin/sh, -c, 'cat >>noted; echo noted']
    description: Take a note
    parameters: {type: object, properties: {word: {type: string}}, required: [word]}
  pay:
    command: [/bin/sh, -c, 'cat >>paid; echo paid']
    description: Pay an amount
    parameters: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    approval: always
`

func newOffice(t *testing.T) *world {
	w := newWorld(t)
	w.file("reprise.yaml", gated)
	return w
}

// lines are those of a file that a tool writes; none if it never ran.
func (w *world) lines(name string) []string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(b)))
}

// pendingCalls are the calls that wait for approval, in order.
func (w *world) pendingCalls(agent string) (calls []string) {
	w.t.Helper()
	for _, o := range w.run("approvals", agent, "-o", "json").exits(0).objects() {
		calls = append(calls, o["call"].(string))
	}
	return calls
}

// outputs are the results of calls in an agent's history, in order.
func (w *world) outputs(agent string) (texts []string) {
	w.t.Helper()
	for _, item := range w.run("history", agent, "-o", "json").exits(0).objects() {
		if item["type"] == "function_call_output" {
			text, _ := item["output"].(string)
			texts = append(texts, text)
		}
	}
	return texts
}

func TestApproveDemo(t *testing.T) { // A44
	w := newWorld(t)
	w.dev()
	w.run("ask", "support/small", "Refund 100 cents for order 7").exits(0)
	w.run("approvals").exits(0, "no call waits")
	paused := w.run("ask", "--id", "r", "support/t1", "Refund 9900 cents for order 7").exits(3, "waits for a person (approval)", `refund({"order":7,"cents":9900})`, "approve support/t1 call_", "deny support/t1 call_")
	if strings.Contains(paused.out, "Paid") {
		t.Errorf("it was answered: %s", paused.out)
	}
	list := w.run("approvals", "-o", "json").exits(0).objects()
	if len(list) != 1 || list[0]["agent"] != "default/support/t1" && list[0]["agent"] != "support/t1" || list[0]["tool"] != "refund" {
		t.Fatalf("approvals: %v", list)
	}
	wantKeys(t, list[0], "agent", "turn", "call", "tool", "arguments", "args_hash", "n", "at")
	call := list[0]["call"].(string)
	turn := list[0]["turn"].(string)
	w.run("approvals").exits(0, "AGENT", "TURN", "support/t1  "+turn, call, "9900", "never", "--turn TURN")
	w.run("approvals", "support/t1").exits(0, call)
	w.run("approvals", "--tenant", "other").exits(0, "no call waits")
	w.run("approvals", "--tenant", "other", "support/t1").exits(2, "other/support/t1")
	w.run("approvals", "--remembered").exits(2, "name the agent")
	w.run("show", "support/t1").exits(0, "paused", "refund", "9900", "approve support/t1 "+call+" --turn "+turn)
	w.run("ask", "support/t1", "hello?").exits(3, "queued behind turn", "approve support/t1")
	w.run("ask", "--policy", "steer", "support/t1", "hurry").exits(3, "steered turn", "approve support/t1")

	w.run("approve", "support/t1").exits(2)
	w.run("approve", "support/t1", "call_other").exits(1, "call_other", "approvals support/t1")
	w.run("approve", "support/t1", call, "--args-hash", strings.Repeat("0", 64)).exits(1, "arguments", call)
	w.run("approve", "support/t1", call, "--turn", "t1").exits(1, call, "waits in turn "+turn+", not in turn t1")
	w.run("deny", "support/t1", call, "--turn", "t1").exits(1, "not in turn t1")
	if ran := of(w.run("events", "support/t1", "-o", "json").exits(0).objects(), "tool.started"); len(ran) > 0 {
		t.Errorf("it ran: %v", ran)
	}
	sent := subscribe(t, w, "reprise.ctl.default.support.t1")
	w.run("approve", "support/t1", call, "--turn", turn, "--id", "a", "--reason", "it was broken").exits(0, `approved refund({"order":7,"cents":9900}), call `+call)
	if msg, err := sent.NextMsgWithContext(t.Context()); err != nil || !strings.Contains(string(msg.Data), list[0]["args_hash"].(string)) || !strings.Contains(string(msg.Data), turn) {
		t.Errorf("the decision is not bound to what was shown: %v, %v", msg, err)
	}
	w.await("support/t1", "turn.completed")
	w.run("approve", "support/t1", call, "--id", "a").exits(0, "applied before")
	w.run("approve", "support/t1", call, "--turn", "t1").exits(1, "no call", "waits for approval")
	w.run("deny", "support/t1", call, "--text", "too late").exits(1, call)
	w.run("ask", "--id", "r", "support/t1", "Refund 9900 cents for order 7").exits(0, "9900")
	events := w.run("events", "support/t1", "-o", "json").exits(0, "it was broken").objects()
	if n := len(of(events, "tool.started")); n != 1 {
		t.Errorf("the refund ran %d times", n)
	}
}

func TestGatedSibling(t *testing.T) { // A40 A25
	w := newOffice(t)
	node := w.dev()
	const text = `Use note with word "milk". Use pay with amount 12.`
	w.run("ask", "--id", "x", "clerk/a", text).exits(3, `pay({"amount":12})`)
	if n, p := w.lines("noted"), w.lines("paid"); len(n) != 1 || len(p) != 0 {
		t.Errorf("noted %v, paid %v", n, p)
	}
	if n := len(of(w.run("events", "clerk/a", "-o", "json").exits(0).objects(), "model.requested")); n != 1 {
		t.Errorf("%d model calls before the decision", n)
	}
	node.kill()
	w.dev()
	calls := w.pendingCalls("clerk/a")
	if len(calls) != 1 {
		t.Fatalf("calls that wait after a restart: %v", calls)
	}
	w.run("approve", "clerk/a", calls[0], "-o", "json").exits(0, `"tool":"pay"`, `"arguments":"{\"amount\":12}"`)
	w.run("ask", "--id", "x", "clerk/a", text).exits(0)
	if n, p := w.lines("noted"), w.lines("paid"); len(n) != 1 || len(p) != 1 {
		t.Errorf("noted %v, paid %v", n, p)
	}
	if got := w.outputs("clerk/a"); !slices.Equal(got, []string{"noted", "paid"}) {
		t.Errorf("the model sees the results %v", got)
	}
}

func TestDeny(t *testing.T) { // A41 A44
	w := newOffice(t)
	w.dev()
	for i, test := range []struct {
		flags []string
		want  string
	}{
		{nil, "The user denied this call; it was not run."},
		{[]string{"--text", ""}, ""},
		{[]string{"--text", "Ask the boss."}, "Ask the boss."},
	} {
		agent := fmt.Sprintf("clerk/d%d", i)
		w.run("ask", agent, "Use pay with amount 5").exits(3)
		call := w.pendingCalls(agent)[0]
		w.run(append([]string{"deny", agent, call, "--args-hash", "nonsense"}, test.flags...)...).exits(1, call)
		w.run(append([]string{"deny", agent, call}, test.flags...)...).exits(0, `denied pay({"amount":5})`)
		w.await(agent, "turn.completed")
		if got := w.outputs(agent); !slices.Equal(got, []string{test.want}) {
			t.Errorf("deny %q: the model sees %q", test.flags, got)
		}
		w.run("approve", agent, call).exits(1, call)
	}
	if p := w.lines("paid"); len(p) != 0 {
		t.Errorf("paid %v", p)
	}
}

func TestRemember(t *testing.T) { // A42
	w := newOffice(t)
	node := w.dev()
	w.run("ask", "clerk/a", "Use pay with amount 1").exits(3)
	w.run("approve", "clerk/a", w.pendingCalls("clerk/a")[0], "--remember", "--reason", "a good client").exits(0)
	w.await("clerk/a", "turn.completed")
	w.run("approvals", "clerk/a", "--remembered").exits(0, "pay", "granted", "a good client", "approvals forget clerk/a")
	w.run("approvals", "clerk/b", "--remembered").exits(1, "does not exist")
	w.run("ask", "clerk/a", "Use pay with amount 2").exits(0)
	node.kill()
	w.dev()
	w.run("ask", "clerk/a", "Use pay with amount 3").exits(0)
	w.run("ask", "clerk/b", "Use pay with amount 4").exits(3)
	w.run("deny", "clerk/b", w.pendingCalls("clerk/b")[0], "--remember").exits(0)
	w.await("clerk/b", "turn.completed")
	w.run("ask", "clerk/b", "Use pay with amount 5").exits(0)
	w.run("approvals", "clerk/b", "--remembered", "-o", "json").exits(0, `"decision":"denied"`)
	w.run("approvals", "forget", "clerk/a", "pay", "--id", "f").exits(0, "forgot the decision about pay")
	w.run("approvals", "forget", "clerk/a", "pay", "--id", "f").exits(0, "applied before")
	w.run("approvals", "forget", "clerk/a", "pay").exits(0, "nothing changed")
	w.run("approvals", "clerk/a", "--remembered").exits(0, "no decision is remembered")
	w.run("ask", "clerk/a", "Use pay with amount 6").exits(3)
	if p := w.lines("paid"); len(p) != 3 {
		t.Errorf("paid %v", p)
	}
}

func TestOneOfThree(t *testing.T) { // A43
	w := newOffice(t)
	w.dev()
	w.run("ask", "clerk/a", "Use pay with amount 1. Use pay with amount 2. Use pay with amount 3.").exits(3)
	calls := w.pendingCalls("clerk/a")
	if len(calls) != 3 {
		t.Fatalf("calls that wait: %v", calls)
	}
	w.run("approve", "clerk/a", calls[1]).exits(0, `pay({"amount":2})`)
	w.await("clerk/a", "tool.completed")
	if p := w.lines("paid"); len(p) != 1 || !strings.Contains(p[0], "2") {
		t.Errorf("paid %v", p)
	}
	if left := w.pendingCalls("clerk/a"); !slices.Equal(left, []string{calls[0], calls[2]}) {
		t.Errorf("calls that wait: %v", left)
	}
	w.run("approve", "clerk/a", calls[1]).exits(0, "nothing changed")
	w.run("deny", "clerk/a", calls[1]).exits(1, calls[1])
	for listed := false; !listed; { // the list follows the log
		for _, row := range w.run("ls", "--phase", "paused", "-o", "json").exits(0).objects() {
			listed = row["waiting"] == 2.0
		}
	}
	for line := range strings.Lines(w.run("ls").exits(0, "WAITING").out) {
		if row := strings.Fields(line); row[0] == "clerk/a" && (row[1] != "paused" || row[3] != "2") {
			t.Errorf("ls: %s", line)
		}
	}
}
