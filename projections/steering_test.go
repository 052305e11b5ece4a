package projections

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

func steered(id string, turn messages.TurnID, text string) messages.Event {
	return messages.InputAccepted{Input: id, Disposition: messages.Steered, Turn: turn, Content: messages.TextContent(text)}
}

func asked(turn messages.TurnID, inputs ...string) messages.Event {
	return messages.ModelRequested{Turn: turn, Inputs: inputs}
}

// A steered input is added to the history with the model call that is sent it.
func TestSteeredInputsEnterWithTheirModelCall(t *testing.T) { // A2
	h := historyOf(input("u1", "go"), started("t2", "u1"), asked("t2", "u1"), answer("t2", "", "c"),
		steered("u5", "t2", "five"), steered("u6", "t2", "six"), steered("u7", "t2", "seven"))
	before := h.Items()
	expect(t, h, "2 t2 user: go", "4 t2 call c: f({})")
	h.Apply(8, done("t2", "c", "ok"))
	predicted := h.ItemsWith([]string{"u5", "u6", "u7", "nobody"})
	h.Apply(9, asked("t2", "u5", "u6", "u7"))
	if got := h.Items(); !reflect.DeepEqual(got, predicted) {
		t.Errorf("items: got %v, want %v of ItemsWith", got, predicted)
	}
	h.Apply(10, answer("t2", "all seen"))
	expect(t, h, "2 t2 user: go", "4 t2 call c: f({})", "8 t2 result c: ok",
		"9 t2 user: five", "9 t2 user: six", "9 t2 user: seven", "10 t2 assistant: all seen")
	if len(before) != 2 || h.waiting != nil {
		t.Errorf("got %d items in the slice returned before, %d waiting inputs, want 2 and none", len(before), len(h.waiting))
	}
}

// A requeued input is added to the history with the turn that it starts.
func TestRequeuedInputsEnterWithTheirOwnTurn(t *testing.T) { // A6
	expect(t, historyOf(input("u1", "go"), started("t2", "u1"), asked("t2", "u1"), answer("t2", "done"), steered("u5", "t2", "late"),
		messages.InputRequeued{Input: "u5", Turn: "t2"}, messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}},
		started("t8", "u5"), asked("t8", "u5")),
		"2 t2 user: go", "4 t2 assistant: done", "8 t8 user: late")
}

// A steered input that no model call was sent is added at the end of its turn.
func TestUnseenInputsStayWithTheirTurnsEnd(t *testing.T) { // A15
	base := []messages.Event{input("u1", "go"), started("t2", "u1"), asked("t2", "u1"), answer("t2", "", "c"), steered("u5", "t2", "and this")}
	interrupted := append(base[:5:5], messages.ToolFailed{Turn: "t2", Call: "c", Message: "interrupted"},
		messages.TurnAborted{Turn: "t2", Inputs: []string{"u1", "u5"}, By: "interrupt", Note: "the user interrupted"})
	expect(t, historyOf(interrupted...), "2 t2 aborted user: go", "4 t2 aborted call c: f({})", "6 t2 aborted result c: interrupted",
		"7 t2 aborted user: and this", "7 t2 aborted developer: the user interrupted")
	failed := append(base[:5:5], messages.ToolSkipped{Turn: "t2", Call: "c", Reason: "failed"}, messages.TurnFailed{Turn: "t2", Inputs: []string{"u1", "u5"}})
	expect(t, historyOf(failed...), "2 t2 failed user: go", "4 t2 failed call c: f({})", "6 t2 failed result c: failed", "7 t2 failed user: and this")
}

func TestTextsOfDenialsAndHooks(t *testing.T) { // A41, A62
	h := historyOf(input("u1", "go"), started("t2", "u1"), answer("t2", "", "a", "b"),
		messages.ToolDenied{Turn: "t2", Call: "b", Message: "not today"}, messages.ToolDenied{Turn: "t2", Call: "a"},
		messages.HookDecided{Turn: "t2", Hook: "h", Decision: "continue", Note: "mind the gap"},
		messages.HookDecided{Turn: "t2", Hook: "h", Decision: "finish", Answer: "enough"},
		messages.HookDecided{Turn: "t2", Hook: "h", Decision: "rewrite", Call: "a", Arguments: "{}"})
	expect(t, h, "2 t2 user: go", "3 t2 call a: f({})", "3 t2 call b: f({})", "5 t2 result a: ", "4 t2 result b: not today",
		"6 t2 developer: mind the gap", "7 t2 assistant: enough")
	if want := len("go") + 2*len("{}") + len("not today") + len("mind the gap") + len("enough"); h.Size() != want {
		t.Errorf("size: got %d, want %d", h.Size(), want)
	}
}

// A cleared agent has the same views as a new one, and slices returned before do not change.
func TestClearedIsAsCreated(t *testing.T) { // A13
	events := []messages.Event{input("u1", "go"), started("t2", "u1"), asked("t2", "u1"), answer("t2", "hm", "c"),
		messages.StatePatched{Patch: json.RawMessage(`{"a":1}`)}, steered("u6", "t2", "six"), input("u7", "seven"),
		messages.ApprovalRequested{Turn: "t2", Call: "c", Tool: "f"}, messages.ApprovalGranted{Turn: "t2", Call: "c", Tool: "f", Remember: true},
		messages.TurnAborted{Turn: "t2", Inputs: []string{"u1", "u6"}, By: "clear"}, messages.InputDropped{Input: "u7", By: "clear"}, messages.AgentCleared{}}
	var cleared, fresh all
	var given []messages.Item
	for i, ev := range events {
		if given = cleared.History.Items(); len(given) > 1 && given[0].Content.Text() != "go" {
			t.Fatalf("items returned before: got %v, want the first go", given)
		}
		cleared.Apply(messages.EventNumber(i+1), ev)
	}
	next := []messages.Event{input("u13", "anew"), started("t14", "u13"), asked("t14", "u13"), answer("t14", "hello")}
	for i, ev := range append([]messages.Event{messages.AgentCreated{}}, next...) {
		for _, a := range []*all{&cleared, &fresh} {
			a.Apply(messages.EventNumber(12+i), ev)
		}
		for _, pair := range [][2]any{
			{cleared.History.View(), fresh.History.View()}, {cleared.History.Digest(), fresh.History.Digest()}, {cleared.History.Size(), fresh.History.Size()},
			{string(cleared.State.JSON()), string(fresh.State.JSON())}, {cleared.Work.Inputs.QueuedIDs(), fresh.Work.Inputs.QueuedIDs()}, {cleared.Work.Inputs.SteeredIDs(), fresh.Work.Inputs.SteeredIDs()},
			{cleared.Work.Waiting(), fresh.Work.Waiting()}, {len(cleared.Decided.List), 0},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("after event %d: got %v, want %v as of a new agent", 12+i, pair[0], pair[1])
			}
		}
	}
	if list := cleared.Turns.List(); !list[0].Cleared || list[0].By != "clear" || list[1].Cleared {
		t.Errorf("turns: got %+v, want the first cleared", list)
	}
}

func TestQueueOfASteeredAgent(t *testing.T) { // A10
	var q Work
	for _, step := range []struct {
		ev              messages.Event
		queued, steered []string
	}{
		{input("u1", "a"), []string{"u1"}, nil},
		{started("t2", "u1"), nil, nil},
		{steered("u3", "t2", "b"), nil, []string{"u3"}},
		{input("u4", "c"), []string{"u4"}, []string{"u3"}},
		{steered("u5", "t2", "d"), []string{"u4"}, []string{"u3", "u5"}},
		{asked("t2", "u3"), []string{"u4"}, []string{"u5"}},
		{input("u7", "e"), []string{"u4", "u7"}, []string{"u5"}},
		{steered("u8", "t2", "f"), []string{"u4", "u7"}, []string{"u5", "u8"}},
		{messages.InputCancelled{Input: "u4"}, []string{"u7"}, []string{"u5", "u8"}},
		{messages.InputRequeued{Input: "u5", Turn: "t2"}, []string{"u5", "u7"}, []string{"u8"}}, // by age
		{messages.TurnAborted{Turn: "t2", Inputs: []string{"u1", "u3", "u8"}}, []string{"u5", "u7"}, nil},
		{messages.InputDropped{Input: "u7"}, []string{"u5"}, nil},
		{messages.AgentCleared{}, nil, nil},
	} {
		q.Apply(1, step.ev)
		if !reflect.DeepEqual(q.Inputs.QueuedIDs(), step.queued) || !reflect.DeepEqual(q.Inputs.SteeredIDs(), step.steered) {
			t.Errorf("after %s %+v: got queued %v, steered %v, want %v, %v", step.ev.EventType(), step.ev, q.Inputs.QueuedIDs(), q.Inputs.SteeredIDs(), step.queued, step.steered)
		}
	}
}

func TestApprovals(t *testing.T) { // A42, A43
	var q Work
	var d Decisions
	n := messages.EventNumber(0)
	apply := func(events ...messages.Event) {
		for _, ev := range events {
			n++
			for _, v := range []Timed{&q, &d} {
				v.At(testTime, nil)
				v.Apply(n, ev)
			}
		}
	}
	expires := testTime.Add(time.Hour)
	requested := func(call messages.CallID, args string) messages.Event {
		return messages.ApprovalRequested{Turn: "t", Call: call, Tool: "refund", Arguments: args, ArgsHash: messages.HashArguments(args), Reason: "over 50", ExpiresAt: &expires}
	}
	q.Apply(0, messages.TurnStarted{Turn: "t"})
	for _, call := range []messages.CallID{"b", "c", "d"} {
		q.Apply(0, messages.ToolRequested{Turn: "t", Call: call, Tool: "refund"})
	}
	apply(messages.ToolRequested{Turn: "t", Call: "a", Tool: "refund", Arguments: "1"}, messages.ToolFlagged{Turn: "t", Call: "a", Of: "z"}, requested("a", "1"),
		requested("b", "2"), messages.ToolFlagged{Turn: "t", Call: "b", Of: "a"}, requested("c", "3"), messages.ToolUnknown{Turn: "t", Call: "d"})
	agent := id("default", "support", "t1")
	pending := func(call messages.CallID, n messages.EventNumber, args string, flagged messages.CallID) messages.Approval {
		return messages.Approval{Agent: agent, Turn: "t", Call: call, Tool: "refund", Arguments: args, ArgsHash: messages.HashArguments(args), Reason: "over 50", Flagged: flagged, ExpiresAt: expires, N: n, At: testTime}
	}
	a, b, c := pending("a", 3, "1", "z"), pending("b", 4, "2", "a"), pending("c", 6, "3", "")
	check := func(want ...messages.Approval) {
		t.Helper()
		if got := q.Approvals(agent); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	check(a, b, c)
	line, err := json.Marshal(a)
	if want := `{"agent":"support/t1","turn":"t","call":"a","tool":"refund","arguments":"1","args_hash":"` + messages.HashArguments("1") +
		`","reason":"over 50","flagged":"z","expires_at":"2026-01-02T04:04:05Z","n":3,"at":"2026-01-02T03:04:05Z"}`; err != nil || string(line) != want {
		t.Errorf("line: got %s, error %v, want %s", line, err, want)
	}
	apply(messages.ApprovalGranted{Turn: "t", Call: "b", Tool: "refund", By: "decision", Remember: true, Reason: "fine"})
	check(a, c)
	apply(messages.ApprovalDenied{Turn: "t", Call: "a", Tool: "refund", By: "decision", Text: "no"}) // of this call only
	check(c)
	remembered := []messages.Remembered{{Agent: agent, Tool: "refund", Decision: "granted", Reason: "fine", N: 8, At: testTime}}
	if got := d.Remembered(agent); !reflect.DeepEqual(got, remembered) {
		t.Errorf("remembered: got %+v, want %+v", got, remembered)
	}
	apply(messages.ApprovalDenied{Turn: "t", Call: "c", Tool: "refund", By: "timeout", Remember: true, Text: "never"})
	if got := d.Remembered(agent); len(got) != 1 || got[0].Decision != "denied" || got[0].Text != "never" {
		t.Errorf("remembered: got %+v, want one denial", got)
	}
	check()
	if w := q.Waiting(); len(w) != 1 || w[0].Kind != messages.WaitUnknown {
		t.Errorf("waiting: got %+v, want one call of unknown outcome", w)
	}
	apply(messages.ApprovalForgotten{Tool: "refund"})
	if got := d.Remembered(agent); len(got) != 0 {
		t.Errorf("remembered: got %+v, want none", got)
	}
}

// A waiting call is listed with the arguments that it runs with.
func TestArgumentsOfWaitingCalls(t *testing.T) { // A22, A33
	var q Work
	q.Apply(0, messages.TurnStarted{Turn: "t"})
	for i, ev := range []messages.Event{
		messages.ToolRequested{Turn: "t", Call: "a", Tool: "f", Arguments: "{}"}, messages.HookDecided{Turn: "t", Call: "a", Decision: "rewrite", Arguments: `{"x":1}`},
		messages.ToolStarted{Turn: "t", Call: "a", Tool: "f"}, messages.ToolUnknown{Turn: "t", Call: "a", Reason: "crash"},
		messages.ToolStarted{Turn: "t", Call: "a", Tool: "f", Arguments: `{"x":2}`, Attempt: 2}, messages.ToolUnknown{Turn: "t", Call: "a", Reason: "again"},
	} {
		q.Apply(messages.EventNumber(i+1), ev)
		want := []Waiting{{Call: "a", Turn: "t", Tool: "f", Kind: messages.WaitUnknown, Reason: "crash", Arguments: `{"x":1}`, N: 4}}
		if i == 5 {
			want[0].Reason, want[0].Arguments, want[0].N = "again", `{"x":2}`, 6
		}
		if waits := i == 3 || i == 5; waits != (len(q.Waiting()) == 1) || waits && !reflect.DeepEqual(q.Waiting(), want) {
			t.Errorf("after event %d: got %+v, want %+v: %t", i+1, q.Waiting(), want, waits)
		}
	}
	if q.Apply(7, messages.ToolCompleted{Turn: "t", Call: "a"}); len(q.Waiting()) != 0 {
		t.Errorf("waiting after the result: got %+v, want none", q.Waiting())
	}
}

func TestBudget(t *testing.T) { // A17, A52
	var b Work
	limits := messages.Limits{MaxTokens: 100, MaxDuration: 60_000}
	usage := func(n int) messages.Usage { return messages.Usage{Input: n, Output: 1} }
	check := func(n int, turn *Budget, agent Budget) {
		t.Helper()
		if got := b.Budgets(); !reflect.DeepEqual(got, Budgets{turn, agent}) {
			gotJSON, _ := json.Marshal(got)
			wantJSON, _ := json.Marshal(Budgets{turn, agent})
			t.Errorf("after event %d:\ngot  %s\nwant %s", n, gotJSON, wantJSON)
		}
	}
	events := []messages.Event{
		messages.TurnStarted{Turn: "t1", MaxSteps: 5, Limits: limits},
		messages.TimerSet{Turn: "t1", Timer: "duration", For: "duration", Set: testTime},
		messages.TimerSet{Turn: "t1", Timer: "r3", For: "retry", Set: testTime},
		messages.BudgetReserved{Turn: "t1", Step: 1, Tokens: 50, Cost: 5},
		messages.ModelRequested{Turn: "t1", Step: 1, Attempt: 1, Call: "m5"},
		messages.ModelRestarted{Turn: "t1", Step: 1, Call: "m5"}, // 6: its usage is unknown
		messages.BudgetSettled{Turn: "t1", Step: 1, Call: "m5", Tokens: 50, Cost: 5, Unknown: true},
		messages.ModelRequested{Turn: "t1", Step: 1, Attempt: 2, Call: "m8"},
		messages.ModelCompleted{Turn: "t1", Step: 1, Call: "m8", Usage: usage(20), Cost: 2},
		messages.BudgetSettled{Turn: "t1", Step: 1, Call: "m8", Tokens: 21, Cost: 2}, // 10: counted already
		messages.TimerCancelled{Turn: "t1", Timer: "duration", Ran: 1500},
		messages.TimerFired{Turn: "t1", Timer: "r3", Ran: 900},
		messages.BudgetRaised{Scope: "agent", Limits: messages.Limits{MaxCost: 77}},
		messages.BudgetRaised{Turn: "t1", Scope: "turn", Limits: messages.Limits{MaxTokens: 300}},
		messages.TurnResumed{Turn: "t1", MaxSteps: 9},
		messages.TurnFailed{Turn: "t1", Reason: "max_tokens"}, // 16
		messages.TurnStarted{Turn: "t17", Continues: "t1", Steps: 1, MaxSteps: 10, Limits: limits},
		messages.ModelRequested{Turn: "t17", Step: 2, Attempt: 1, Call: "m18"},
		messages.ModelFailed{Turn: "t17", Step: 2, Call: "m18", Usage: usage(3)},
		messages.TurnAborted{Turn: "t17"},
	}
	first := messages.Limits{MaxSteps: 5, MaxTokens: 100, MaxDuration: 60_000}
	for i, ev := range events {
		b.Apply(messages.EventNumber(i+1), ev)
		switch i + 1 {
		case 5:
			reserved := Use{Tokens: 50, Cost: 5}
			check(5, &Budget{first, Use{Steps: 1}, reserved, testTime}, Budget{Used: Use{Steps: 1}, Reserved: reserved, RunningSince: testTime})
		case 10:
			used := Use{Steps: 1, Tokens: 71, Cost: 7}
			check(10, &Budget{Limits: first, Used: used, RunningSince: testTime}, Budget{Used: used, RunningSince: testTime})
		case 15:
			used := Use{Steps: 1, Tokens: 71, Cost: 7, Duration: 1500}
			check(15, &Budget{Limits: messages.Limits{MaxSteps: 9, MaxTokens: 300, MaxDuration: 60_000}, Used: used}, Budget{Limits: messages.Limits{MaxCost: 77}, Used: used})
		case 19:
			used := Use{Steps: 2, Tokens: 75, Cost: 7, Duration: 1500}
			check(19, &Budget{Limits: messages.Limits{MaxSteps: 10, MaxTokens: 100, MaxDuration: 60_000}, Used: used}, Budget{Limits: messages.Limits{MaxCost: 77}, Used: used})
		case 20:
			check(20, nil, Budget{Limits: messages.Limits{MaxCost: 77}, Used: Use{Steps: 2, Tokens: 75, Cost: 7, Duration: 1500}})
		}
	}
}

// A step that a turn repeats, since it continues a failed one, counts again for the agent and not
// for the turn. Another attempt counts for neither.
func TestBudgetOfRepeatedSteps(t *testing.T) { // A17, A21, A52
	var b Work
	asks := func(turn messages.TurnID, step, attempt int) messages.Event {
		return messages.ModelRequested{Turn: turn, Step: step, Attempt: attempt, Call: "m"}
	}
	for i, step := range []struct {
		ev          messages.Event
		turn, agent int // steps used; -1 without a turn
	}{
		{messages.TurnStarted{Turn: "t1", MaxSteps: 5}, 0, 0},
		{asks("t1", 1, 1), 1, 1},
		{messages.ModelCompleted{Turn: "t1", Step: 1, Call: "m"}, 1, 1},
		{asks("t1", 2, 1), 2, 2},
		{messages.ModelFailed{Turn: "t1", Step: 2, Call: "m"}, 2, 2},
		{asks("t1", 2, 2), 2, 2},
		{messages.ModelRestarted{Turn: "t1", Step: 2, Call: "m"}, 2, 2},
		{asks("t1", 2, 3), 2, 2},
		{messages.ModelFailed{Turn: "t1", Step: 2, Call: "m"}, 2, 2},
		{messages.TurnFailed{Turn: "t1", Reason: "model", Steps: 2}, -1, 2},
		{messages.TurnStarted{Turn: "t11", Continues: "t1", Steps: 1, MaxSteps: 5}, 1, 2},
		{asks("t11", 2, 1), 2, 3},
		{messages.ModelCompleted{Turn: "t11", Step: 2, Call: "m", Usage: messages.Usage{Input: 7}}, 2, 3},
		{messages.TurnFailed{Turn: "t11", Reason: "hook", Steps: 2}, -1, 3},
		{messages.AgentCleared{}, -1, 3},
		{messages.TurnStarted{Turn: "t16", Continues: "t11"}, 0, 3}, // nothing is left to continue
	} {
		b.Apply(messages.EventNumber(i+1), step.ev)
		a, turn := b.Budgets(), -1
		if a.Turn != nil {
			turn = a.Turn.Used.Steps
		}
		if turn != step.turn || a.Agent.Used.Steps != step.agent {
			t.Errorf("after event %d: steps: got %d of the turn, %d of the agent, want %d, %d", i+1, turn, a.Agent.Used.Steps, step.turn, step.agent)
		}
	}
	if used := b.Budgets().Turn.Used; used.Tokens != 0 {
		t.Errorf("tokens of the first turn after a clear: got %+v, want none", used)
	}
}

// The status of a turn that exceeds a limit names the limit, also while the turn waits for a decision.
func TestStatusNamesTheLimit(t *testing.T) { // A17
	var w Work
	exhausted := messages.BudgetExhausted{Turn: "t1", Scope: "agent", Limit: "max_tokens", Message: "100 tokens are used"}
	pause := func(reason string) messages.Event { return messages.TurnPaused{Turn: "t1", Reason: reason} }
	raise := func(scope messages.Scope, l messages.Limits) messages.Event {
		return messages.BudgetRaised{Turn: "t1", Scope: scope, Limits: l}
	}
	for i, step := range []struct {
		ev    messages.Event
		named bool
	}{
		{messages.TurnStarted{Turn: "t1", MaxSteps: 5}, false},
		{exhausted, false}, // tools still run
		{pause("tool_unknown"), true},
		{messages.TurnResumed{Turn: "t1"}, false},
		{pause("max_tokens"), true},
		{raise("agent", messages.Limits{MaxSteps: 9}), true}, // another limit
		{raise("agent", messages.Limits{MaxTokens: 300}), false},
		{messages.TurnResumed{Turn: "t1"}, false},
		{exhausted, false},
		{pause("max_tokens"), true},
		{messages.TurnResumed{Turn: "t1"}, false}, // raised in its definition
		{pause("hook"), false},
		{messages.TurnAborted{Turn: "t1"}, false},
	} {
		w.Apply(messages.EventNumber(i+1), step.ev)
		line, err := json.Marshal(NewAgentStatus(Agent{}, &w, new(Children)))
		const limit = `"limit":{"scope":"agent","limit":"max_tokens","message":"100 tokens are used"}`
		if got := strings.Contains(string(line), limit); err != nil || got != step.named || strings.Contains(string(line), `"limit":`) != step.named {
			t.Errorf("after event %d: got %s, error %v, want the limit named: %t", i+1, line, err, step.named)
		}
	}
}

// A paused turn and its agent's status have the reason and message of the pause.
func TestTurnsTellWhyTheyWait(t *testing.T) { // A17, A40
	var turns Turns
	var w Work
	for i, ev := range []messages.Event{
		messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}, MaxSteps: 5},
		asked("t1", "u1", "u2"),
		messages.TurnPaused{Turn: "t1", Reason: "approval", Message: "approve it", Calls: []messages.CallID{"c"}},
	} {
		turns.Apply(messages.EventNumber(i+1), ev)
		w.Apply(messages.EventNumber(i+1), ev)
	}
	want := Turn{ID: "t1", Inputs: []string{"u1", "u2"}, Phase: Paused, Reason: "approval", Message: "approve it", Waiting: []messages.CallID{"c"}, Started: 1, Limits: messages.Limits{MaxSteps: 5}}
	if got := turns.List()[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	w.Apply(4, messages.BudgetRaised{Scope: "agent", Limits: messages.Limits{MaxSteps: 7}})
	status := NewAgentStatus(Agent{Phase: "paused", Waiting: 1}, &w, new(Children))
	line, err := json.Marshal(status)
	if tail := `"queue":[],"waiting":[],"paused":"approval","message":"approve it","budget":{"turn":{"limits":{"max_steps":5},"used":{"steps":0,"tokens":0}},"agent":{"limits":{"max_steps":7},"used":{"steps":1,"tokens":0}}}}`; err != nil || string(line[len(line)-len(tail):]) != tail {
		t.Errorf("status: got %s, error %v, want the end %s", line, err, tail)
	}
	turns.Apply(4, messages.TurnResumed{Turn: "t1", MaxSteps: 9})
	if got := turns.List()[0]; got.Phase != Running || got.Reason+got.Message != "" || got.Waiting != nil || got.Limits.MaxSteps != 9 {
		t.Errorf("resumed turn: got %+v, want it running without a reason", got)
	}
}

// What a parent learns of a turn that a hook holds names the hook and its reason, until the turn is
// resumed.
func TestHeldTurnsNameTheirHook(t *testing.T) { // A40, A61
	for reason, want := range map[string]string{
		"":        "hook: hook guard asked for a person",
		"too old": "hook: hook guard asked for a person: too old",
	} {
		var w Work
		for i, ev := range []messages.Event{
			started("t1", "u1"),
			messages.HookDecided{Turn: "t1", Hook: "guard", Point: messages.PointTurnStart, Decision: string(HookPause), Reason: reason},
			messages.TurnPaused{Turn: "t1", Reason: PausedHook},
		} {
			w.Apply(messages.EventNumber(i+1), ev)
		}
		if held := w.Turn.Held; held == nil || *held != (Hold{"guard", reason}) {
			t.Errorf("held by %+v, want guard with reason %q", held, reason)
		}
		list, _ := w.Waits(messages.AgentID{})
		if len(list) != 1 || list[0].Kind != messages.WaitPaused || list[0].Reason != want {
			t.Errorf("waits: got %+v, want reason %q", list, want)
		}
		if w.Apply(4, messages.TurnResumed{Turn: "t1"}); w.Turn.Held != nil {
			t.Errorf("held by %+v after the turn was resumed", w.Turn.Held)
		}
	}
}
