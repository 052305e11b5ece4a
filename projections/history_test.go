package projections

import (
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// historyOf returns the history after the events, numbered from 1.
func historyOf(events ...messages.Event) *History {
	h := &History{}
	for i, ev := range events {
		h.Apply(messages.EventNumber(i+1), ev)
	}
	return h
}

// lines returns a history as text: number, turn, mark and item on each line.
func lines(h *History) string {
	var b strings.Builder
	for _, v := range h.View() {
		prefix := strings.Join([]string{itoa(v.N), string(v.Turn), string(v.Status)}, " ")
		b.WriteString(strings.TrimSpace(prefix) + " " + itemText(v.Item) + "\n")
	}
	return b.String()
}

func itoa(n messages.EventNumber) string { b, _ := json.Marshal(n); return string(b) }

func expect(t *testing.T, h *History, want ...string) {
	t.Helper()
	if got := lines(h); got != strings.Join(append(want, ""), "\n") {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
	if h.Len() != len(want) || len(h.Items()) != len(want) {
		t.Errorf("got length %d, %d items, want %d", h.Len(), len(h.Items()), len(want))
	}
}

func input(id, text string) messages.Event {
	return messages.InputAccepted{Input: id, Content: messages.TextContent(text)}
}

func started(turn messages.TurnID, inputs ...string) messages.TurnStarted {
	return messages.TurnStarted{Turn: turn, Inputs: inputs}
}

func answer(turn messages.TurnID, text string, calls ...messages.CallID) messages.ModelCompleted {
	ev := messages.ModelCompleted{Turn: turn}
	if text != "" {
		ev.Items = append(ev.Items, messages.Text(messages.RoleAssistant, text))
	}
	for _, c := range calls {
		ev.Items = append(ev.Items, messages.Item{Type: messages.ItemCall, CallID: c, Name: "f", Arguments: "{}"})
	}
	return ev
}

func done(turn messages.TurnID, call messages.CallID, output string) messages.Event {
	return messages.ToolCompleted{Turn: turn, Call: call, Output: output}
}

// Results are listed in the order of their calls, whatever order they arrive in.
func TestResultsStandInRequestOrder(t *testing.T) { // A32
	base := []messages.Event{input("u1", "go"), started("t2", "u1"), answer("t2", "", "a", "b", "c", "d")}
	results := map[messages.CallID]messages.Event{
		"a": done("t2", "a", "A"), "b": messages.ToolFailed{Turn: "t2", Call: "b", Message: "B"},
		"c": messages.ToolSkipped{Turn: "t2", Call: "c", Reason: "C"}, "d": done("t2", "d", "D"),
	}
	var want []string
	for _, order := range []string{"abcd", "dcba", "bdac", "cadb"} {
		events := base
		for _, c := range order {
			events = append(events[:len(events):len(events)], results[messages.CallID(c)])
		}
		var got []string
		for _, item := range historyOf(events...).Items() {
			got = append(got, itemText(item))
		}
		if want == nil {
			want = []string{"user: go", "call a: f({})", "call b: f({})", "call c: f({})", "call d: f({})", "result a: A", "result b: B", "result c: C", "result d: D"}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("order %s: got %q, want %q", order, got, want)
		}
	}
	expect(t, historyOf(append(base, results["d"])...), "2 t2 user: go", "3 t2 call a: f({})", "3 t2 call b: f({})", "3 t2 call c: f({})", "3 t2 call d: f({})", "4 t2 result d: D")
}

func TestCallsInASecondStep(t *testing.T) {
	expect(t, historyOf(input("u1", "go"), started("t2", "u1"),
		answer("t2", "first", "call_1"), done("t2", "call_1", "one"),
		answer("t2", "second", "call_1", "call_2"), done("t2", "call_2", "three"), done("t2", "call_1", "two"),
		answer("t2", "bye"), messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}}),
		"2 t2 user: go", "3 t2 assistant: first", "3 t2 call call_1: f({})", "4 t2 result call_1: one",
		"5 t2 assistant: second", "5 t2 call call_1: f({})", "5 t2 call call_2: f({})", "7 t2 result call_1: two", "6 t2 result call_2: three",
		"8 t2 assistant: bye")
}

func TestAbortedAndFailedTurnsStayMarked(t *testing.T) { // A15
	expect(t, historyOf(
		input("u1", "one"), started("t2", "u1"), messages.TurnFailed{Turn: "t2", Reason: "model"},
		input("u4", "two"), started("t5", "u4"), answer("t5", "", "c"), messages.ToolFailed{Turn: "t5", Call: "c", Message: "interrupted"},
		messages.TurnAborted{Turn: "t5", Inputs: []string{"u4"}, Note: "the user interrupted"},
		input("u9", "three"), started("t10", "u9"), answer("t10", "ok"), messages.TurnCompleted{Turn: "t10"},
		input("u13", "four"), started("t14", "u13"), messages.TurnAborted{Turn: "t14"}),
		"2 t2 failed user: one",
		"5 t5 aborted user: two", "6 t5 aborted call c: f({})", "7 t5 aborted result c: interrupted", "8 t5 aborted developer: the user interrupted",
		"10 t10 user: three", "11 t10 assistant: ok", "14 t14 aborted user: four")
}

// A late result of a completed call is ignored. That of an open call is added to the call's turn,
// never to a later turn's call of the same id.
func TestLateResults(t *testing.T) {
	h := historyOf(input("u1", "go"), started("t2", "u1"), answer("t2", "", "c", "d"), messages.ToolFailed{Turn: "t2", Call: "c", Message: "interrupted"},
		messages.TurnAborted{Turn: "t2"}, input("u6", "on"), started("t7", "u6"), answer("t7", "", "c"),
		done("t2", "c", "late"), done("t2", "d", "late"), done("t9", "c", "alien"))
	expect(t, h, "2 t2 aborted user: go", "3 t2 aborted call c: f({})", "3 t2 aborted call d: f({})", "4 t2 aborted result c: interrupted",
		"10 t2 aborted result d: late", "7 t7 user: on", "8 t7 call c: f({})")
	h.Apply(12, done("t7", "c", "its own"))
	if got := h.Items(); got[len(got)-1].Output != "its own" {
		t.Errorf("last item: got %+v, want the output its own", got[len(got)-1])
	}
}

func TestContinuingTurnTakesOverOpenCalls(t *testing.T) {
	expect(t, historyOf(input("u1", "go"), started("t2", "u1"), answer("t2", "", "c"), messages.TurnFailed{Turn: "t2"},
		messages.TurnStarted{Turn: "t5", Inputs: []string{"u1"}, Continues: "t2"}, done("t5", "c", "ok"), answer("t5", "yes")),
		"2 t2 failed user: go", "3 t2 failed call c: f({})", "6 t2 failed result c: ok", "7 t5 assistant: yes")
}

func TestWaitingInputs(t *testing.T) {
	h := historyOf(input("u1", "one"), input("u2", "two"), input("u3", "three"))
	expect(t, h)
	h.Apply(4, started("t4", "u2", "nobody"))
	expect(t, h, "4 t4 user: two")
	h.Apply(5, messages.InputCancelled{Input: "u3"}) // A10: cancelled without a turn
	h.Apply(6, messages.TurnAborted{Turn: "t4", Inputs: []string{"u2", "u3"}})
	h.Apply(7, started("t7", "u3", "u1"))
	expect(t, h, "4 t4 aborted user: two", "7 t7 user: one")
	if h.waiting != nil {
		t.Errorf("waiting inputs: got %d, want none", len(h.waiting))
	}
}

// Items of a model call are returned unchanged, and later events do not change the returned slice.
func TestItemsAreUnchanged(t *testing.T) {
	items := []messages.Item{
		messages.Text("assistant", "a"), messages.Text("developer", "d"), messages.Text("user", "u"), messages.Text("tool", "t"), messages.Text("assistant", ""),
		{Type: messages.ItemMessage, Role: "assistant", Content: messages.TextContent("a"), ID: "msg_1"},
		{Type: messages.ItemMessage, Role: "assistant", Content: messages.TextContent("a"), Raw: json.RawMessage(`{}`), Provider: "p"},
		{Type: messages.ItemMessage, Role: "user", Content: messages.Content{{Type: "text", Text: "a", Detail: "low"}}},
		{Type: messages.ItemMessage, Role: "user", Content: messages.Content{{Type: "text", Text: "a"}, {Type: "image_url", ImageURL: "https://x.test"}}},
		{Type: messages.ItemMessage, Role: "user"},
		{Type: messages.ItemReasoning, Content: messages.TextContent("hm"), Raw: json.RawMessage(`{"s":1}`)},
		{Type: messages.ItemRefusal, Content: messages.TextContent("no")},
		{Type: "web_search_call", ID: "ws", Raw: json.RawMessage(`{"q":1}`), Provider: "p"},
		{Type: messages.ItemCallOutput, CallID: "x", Output: "the provider's own"},
	}
	h := historyOf(messages.ModelCompleted{Turn: "t1", Items: items})
	if got := h.Items(); !reflect.DeepEqual(got, items) {
		t.Errorf("got  %+v\nwant %+v", got, items)
	}
	given := h.Items()
	h.Apply(2, messages.ModelCompleted{Turn: "t1", Items: []messages.Item{{Type: messages.ItemCall, CallID: "c1"}, {Type: messages.ItemCall, CallID: "c2"}}})
	h.Apply(3, messages.ToolCompleted{Turn: "t1", Call: "c2", Output: "later"})
	if got := h.Items()[len(items)+2]; got.Output != "later" || !reflect.DeepEqual(given, items) {
		t.Errorf("after a result: got %+v, and %+v in the slice returned before, want later and no change", got, given)
	}
	h.Apply(4, messages.ToolCompleted{Turn: "t1", Call: "c1", Output: "sooner"})
	if got := h.Items(); len(got) != len(items)+4 || got[len(items)+2].Output != "sooner" || got[len(items)+3].Output != "later" {
		t.Errorf("results: got %+v, want sooner, later", got[len(items):])
	}
}

func TestHistoryJSON(t *testing.T) {
	h := historyOf(input("u1", "go"), started("t2", "u1"), answer("t2", "", "c"), done("t2", "c", "ok"), messages.TurnFailed{Turn: "t2"})
	raw, err := json.Marshal(h.View())
	want := `[{"type":"message","role":"user","content":"go","n":2,"turn":"t2","status":"failed"},` +
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}","n":3,"turn":"t2","status":"failed"},` +
		`{"type":"function_call_output","call_id":"c","output":"ok","n":4,"turn":"t2","status":"failed"}]`
	if err != nil || string(raw) != want {
		t.Errorf("got %s, error %v, want %s", raw, err, want)
	}
}

func TestDigest(t *testing.T) {
	base := []messages.Event{input("u1", "go"), started("t2", "u1"), answer("t2", "", "a", "b")}
	one, other := historyOf(base...), historyOf(base...)
	open := one.Digest()
	one.Apply(4, done("t2", "a", "A"))
	half := one.Digest()
	one.Apply(5, done("t2", "b", "B"))
	other.Apply(4, done("t2", "b", "B"))
	other.Apply(5, done("t2", "a", "A"))
	if one.Digest("x") != other.Digest("x") {
		t.Error("digests of two orders of results: got different ones, want the same")
	}
	seen := map[messages.Digest]bool{}
	for _, d := range []messages.Digest{open, half, one.Digest(), one.Digest("x"), one.Digest("x", ""), one.Digest("", "x")} {
		if seen[d] {
			t.Errorf("digest: got %s twice, want different ones", d)
		}
		seen[d] = true
	}
	// Items after a call without a result are part of the digest.
	lost := historyOf(base[0], base[1], base[2])
	before := lost.Digest()
	lost.Apply(4, answer("t2", "and more"))
	if lost.Digest() == before {
		t.Error("digest with an item after an open call: got the same, want another")
	}
}

const idleAgents = 4000

// The history of an idle agent takes little memory.
func TestIdleAgentIsLean(t *testing.T) {
	agents := make([]*History, idleAgents)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range agents {
		agents[i] = historyOf(input("u1", "What is 17 times 19?"), started("t2", "u1"), answer("t2", "It is 323."), messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / idleAgents
	t.Logf("%d bytes for an idle agent with one exchange", each)
	if each > 400 {
		t.Errorf("bytes for an idle agent: got %d, want at most 400", each)
	}
	runtime.KeepAlive(agents)
}

func BenchmarkItems(b *testing.B) {
	var events []messages.Event
	for range 250 {
		events = append(events, input("u", "hello"), started("t", "u"), answer("t", "", "c"), done("t", "c", "ok"), answer("t", "bye"))
	}
	h := historyOf(events...)
	b.ReportAllocs()
	for b.Loop() {
		h.Items()
	}
}

// Items of earlier turns are not built again for the next model call.
func TestItemsAreKeptBetweenTurns(t *testing.T) {
	h := historyOf(input("u1", "hello"), started("t1", "u1"), messages.ModelRequested{Turn: "t1", Inputs: []string{"u1"}}, answer("t1", "hi"))
	first := &h.Items()[0]
	for n, ev := range []messages.Event{
		messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}},
		input("u2", "bye"), started("t2", "u2"), messages.ModelRequested{Turn: "t2", Inputs: []string{"u2"}},
	} {
		h.Apply(messages.EventNumber(n+5), ev)
	}
	kept := len(h.shown)
	if kept != 2 || &h.shown[0] != first {
		t.Fatalf("kept items: got %d, want the 2 of before", kept)
	}
	expect(t, h, "2 t1 user: hello", "4 t1 assistant: hi", "7 t2 user: bye")
}
