package projections

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

func splitLines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }

func TestTurnsAndUsage(t *testing.T) { // A52
	var a all
	retry := testTime
	tokens := func(n int) messages.Usage { return messages.Usage{Input: n, Output: 1} }
	for i, ev := range []messages.Event{
		input("u1", "one"), started("t2", "u1"),
		messages.ModelRequested{Turn: "t2", Step: 1, Attempt: 1, Call: "m3", Model: "demo"},
		messages.ModelFailed{Turn: "t2", Step: 1, Call: "m3", Kind: "rate_limit", RetryAt: &retry, Usage: tokens(10), Cost: 5},
		messages.ModelRequested{Turn: "t2", Step: 1, Attempt: 2, Call: "m5", Model: "demo"},
		messages.ModelCompleted{Turn: "t2", Step: 1, Call: "m5", Model: "demo-2026", Usage: tokens(20), Cost: 7},
		messages.TurnPaused{Turn: "t2", Reason: "unknown outcome"},
		messages.TurnResumed{Turn: "t2"},
		messages.TurnFailed{Turn: "t2", Inputs: []string{"u1"}, Reason: "max_steps", Message: "20 steps", Steps: 1, Usage: messages.Usage{Input: 30, Output: 2}},
		messages.TurnStarted{Turn: "t10", Continues: "t2", Steps: 1},
		messages.ModelRequested{Turn: "t10", Step: 2, Call: "m11", Model: "demo"},
		messages.ModelRestarted{Turn: "t10", Step: 2, Call: "m11"},
		messages.ModelRequested{Turn: "t10", Step: 2, Call: "m13", Model: "demo"},
		messages.ModelCompleted{Turn: "t10", Step: 2, Call: "m13", Usage: tokens(40)},
		messages.TurnCompleted{Turn: "t10", Steps: 2, Usage: tokens(40)},
		messages.TurnAborted{Turn: "t10", Reason: "too late"}, messages.TurnPaused{Turn: "nobody"},
	} {
		a.At(testTime.Add(time.Duration(i)*time.Second), nil)
		a.Apply(messages.EventNumber(i+1), ev)
	}
	want := []Turn{
		{ID: "t2", Inputs: []string{"u1"}, Phase: Failed, Reason: "max_steps", Message: "20 steps", Started: 2, StartedAt: testTime.Add(time.Second), Ended: 9, EndedAt: testTime.Add(8 * time.Second), Steps: 1, Usage: messages.Usage{Input: 30, Output: 2}, Cost: 12},
		{ID: "t10", Phase: Completed, Continues: "t2", Started: 10, StartedAt: testTime.Add(9 * time.Second), Ended: 15, EndedAt: testTime.Add(14 * time.Second), Steps: 2, Usage: tokens(40)},
	}
	if got := a.Turns.List(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	calls := []ModelCall{
		{N: 4, Turn: "t2", Step: 1, Call: "m3", Model: "demo", Failed: "rate_limit", Usage: tokens(10), Cost: 5},
		{N: 6, Turn: "t2", Step: 1, Call: "m5", Model: "demo", Answered: "demo-2026", Usage: tokens(20), Cost: 7},
		{N: 12, Turn: "t10", Step: 2, Call: "m11", Model: "demo", Lost: true},
		{N: 14, Turn: "t10", Step: 2, Call: "m13", Model: "demo", Usage: tokens(40)},
	}
	if got := a.Usage.Calls(); !reflect.DeepEqual(got, calls) {
		t.Errorf("got  %+v\nwant %+v", got, calls)
	}
	if got := a.Usage.Total(); got != (Used{4, 1, messages.Usage{Input: 70, Output: 3}, 12}) {
		t.Errorf("total: got %+v", got)
	}
	byTurn, byModel := make(map[messages.TurnID]Used), make(map[string]Used)
	for _, l := range a.Usage.Lines() {
		switch l.Type {
		case "turn":
			byTurn[l.Turn] = l.Used
		case "model":
			byModel[l.Model] = l.Used
		}
	}
	for _, turn := range want {
		if got := byTurn[turn.ID]; got.Usage != turn.Usage || got.Cost != turn.Cost {
			t.Errorf("usage of turn %s: got %+v, want %+v, cost %d", turn.ID, got, turn.Usage, turn.Cost)
		}
	}
	if len(byModel) != 1 || byModel["demo"].Usage.Input != 70 || byModel["demo"].Calls != 4 {
		t.Errorf("usage by model: got %+v, want 4 calls of demo", byModel)
	}
}

// A model call that is aborted with its turn is listed as lost, since it may have cost something.
func TestUsageOfAbortedCalls(t *testing.T) { // A52
	var u Usage
	for i, ev := range []messages.Event{
		messages.ModelRequested{Turn: "t1", Step: 1, Call: "m1", Model: "demo"}, messages.TurnAborted{Turn: "t1"},
		messages.ModelCompleted{Turn: "t1", Step: 1, Call: "m1", Usage: messages.Usage{Input: 2}}, // late, of another node: it counts
		messages.TurnAborted{Turn: "t1"},
	} {
		u.Apply(messages.EventNumber(i+1), ev)
	}
	want := []ModelCall{{N: 2, Turn: "t1", Step: 1, Call: "m1", Model: "demo", Lost: true}, {N: 3, Turn: "t1", Step: 1, Call: "m1", Usage: messages.Usage{Input: 2}}}
	if got := u.Calls(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The estimated usage of a summary counts against limits and is not part of usage and cost.
func TestSummariesOfUnknownUsage(t *testing.T) { // A52, A86
	usage := messages.Usage{Input: 2, Output: 1}
	var a struct {
		Usage
		Turns
		Work
	}
	for i, ev := range []messages.Event{
		started("t1"),
		messages.CompactionRequested{Turn: "t1", Call: "s2", Model: "demo"}, messages.CompactionFailed{Turn: "t1", Call: "s2", Unknown: true, Tokens: 10, Cost: 100},
		messages.CompactionRequested{Turn: "t1", Call: "s4", Model: "demo"}, messages.CompactionFailed{Turn: "t1", Call: "s4", Kind: "network", Usage: usage, Cost: 7},
		messages.CompactionRequested{Turn: "t1", Call: "s6", Model: "demo"}, messages.HistoryCompacted{Turn: "t1", Call: "s6", Unknown: true, Tokens: 10, Cost: 100},
	} {
		n := messages.EventNumber(i + 1)
		a.Usage.Apply(n, ev)
		a.Turns.Apply(n, ev)
		a.Work.Apply(n, ev)
	}
	if got := a.Usage.Total(); got != (Used{3, 1, usage, 7}) {
		t.Errorf("usage: got %+v, want %+v, cost 7", got, usage)
	}
	if got := a.Turns.List()[0]; got.Usage != usage || got.Cost != 7 {
		t.Errorf("turn: got %+v, cost %d, want %+v, cost 7", got.Usage, got.Cost, usage)
	}
	if got := a.Budgets(); got.Agent.Used != (Use{Tokens: 23, Cost: 207}) || got.Turn.Used != got.Agent.Used {
		t.Errorf("budget: got %+v, want 23 tokens, cost 207", got)
	}
}

func TestQueueAndStatus(t *testing.T) {
	var q Work
	row := Agent{Agent: messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a1"}, Phase: "paused", Turn: "t2", Events: 9, Epoch: 3, Owner: "n1", Updated: testTime}
	show := func() string {
		b, err := json.Marshal(NewAgentStatus(row, &q, new(Children)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	head := `{"agent":"assistant/a1","phase":"paused","turn":"t2","events":9,"epoch":3,"owner":"n1","updated":"2026-01-02T03:04:05Z","queue":`
	if got := show(); got != head+`[],"waiting":[]}` {
		t.Errorf("status: got %s, want an empty queue", got)
	}
	for i, ev := range []messages.Event{input("u1", "x"), started("t2", "u1"), input("u3", "y"), input("u4", "z"),
		messages.ToolRequested{Turn: "t2", Call: "c", Tool: "refund"}, messages.ToolStarted{Turn: "t2", Call: "c", Tool: "refund"}, messages.ToolUnknown{Turn: "t2", Call: "c", Reason: "crash"}} {
		q.Apply(messages.EventNumber(i+1), ev)
	}
	if got := show(); got != head+`["u3","u4"],"waiting":[{"call":"c","turn":"t2","tool":"refund","kind":"unknown","reason":"crash","n":7}],"budget":{"turn":{"limits":{},"used":{"steps":0,"tokens":0}},"agent":{"limits":{},"used":{"steps":0,"tokens":0}}}}` {
		t.Errorf("status: got %s, want two queued inputs and a waiting call", got)
	}
	q.Apply(8, messages.ToolCompleted{Turn: "t2", Call: "c"})
	q.Apply(9, messages.TurnAborted{Turn: "t2", Inputs: []string{"u1", "u3"}})
	if len(q.Waiting()) != 0 || !reflect.DeepEqual(q.Inputs.QueuedIDs(), []string{"u4"}) {
		t.Errorf("got waiting %+v, queued %v, want none and u4", q.Waiting(), q.Inputs.QueuedIDs())
	}
}

func id(tenant, kind, key string) messages.AgentID {
	return messages.AgentID{Tenant: tenant, Kind: kind, Key: key}
}

func TestAgents(t *testing.T) {
	var l Agents
	for _, a := range []Agent{
		{Agent: id("b", "x", "1"), Phase: "idle", Events: 4}, {Agent: id("a", "y", "1"), Phase: "running", Events: 4},
		{Agent: id("a", "x", "2"), Phase: "idle", Events: 4}, {Agent: id("a", "x", "1"), Phase: "running", Turn: "t2", Waiting: 3, Events: 4, Epoch: 2, Owner: "n1", Updated: testTime},
	} {
		if !l.Apply(a) {
			t.Errorf("apply %v: got false, want true", a)
		}
	}
	for _, tc := range []struct {
		f    AgentFilter
		want string
	}{
		{AgentFilter{}, "a/x/1 a/x/2 a/y/1 b/x/1"},
		{AgentFilter{Tenant: "a"}, "a/x/1 a/x/2 a/y/1"},
		{AgentFilter{Kind: "x"}, "a/x/1 a/x/2 b/x/1"},
		{AgentFilter{Phase: "running"}, "a/x/1 a/y/1"},
		{AgentFilter{Tenant: "a", Kind: "x", Phase: "idle"}, "a/x/2"},
		{AgentFilter{Limit: 2}, "a/x/1 a/x/2"},
		{AgentFilter{Limit: 2, After: id("a", "x", "2")}, "a/y/1 b/x/1"},
		{AgentFilter{Tenant: "c"}, ""},
	} {
		var got []string
		for _, a := range l.List(tc.f) {
			got = append(got, a.Agent.Full())
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: got %v, want %s", tc.f, got, tc.want)
		}
	}
	want := Agent{Agent: id("a", "x", "1"), Phase: "running", Turn: "t2", Waiting: 3, Events: 4, Epoch: 2, Owner: "n1", Updated: testTime}
	if l.Apply(Agent{Agent: want.Agent, Phase: "idle", Events: 3}) {
		t.Error("apply a row of an older event: got true, want false")
	}
	if got, ok := l.Agent(want.Agent); !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !l.Apply(Agent{Agent: want.Agent, Phase: "idle", Events: 4}) {
		t.Error("apply a row of the same event: got false, want true")
	}
	if got, _ := l.Agent(want.Agent); got != (Agent{Agent: want.Agent, Phase: "idle", Events: 4}) {
		t.Errorf("got %+v, want the idle row", got)
	}
	if _, ok := l.Agent(id("a", "x", "3")); ok || l.Len() != 4 {
		t.Errorf("got %d agents, an unknown one: %t, want 4, false", l.Len(), ok)
	}
}

// Of the agents of a partition that was dropped none is left, and they may come back.
func TestDroppedAgents(t *testing.T) {
	var l Agents
	a := id("a", "x", "1")
	for i := range 200 {
		l.Apply(Agent{Agent: id("a", "x", fmt.Sprint(i)), Phase: "idle", Events: 9})
	}
	of, all := l.In(a.Partition()), len(l.List(AgentFilter{}))
	l.Drop(a.Partition())
	if _, there := l.Agent(a); there || l.Len() != all-of || len(l.List(AgentFilter{})) != all-of || l.In(a.Partition()) != 0 {
		t.Errorf("%d of %d agents are left, %d were dropped", l.Len(), all, of)
	}
	for range 2 { // once before the list is put in order, once behind
		l.Drop(a.Partition())
		if !l.Apply(Agent{Agent: a, Phase: "idle", Events: 1}) {
			t.Error("it does not come back")
		}
		if list := l.List(AgentFilter{}); len(list) != all-of+1 {
			t.Errorf("%d agents are listed, want %d and the one that is back", len(list), all-of)
		}
	}
	for range 100 { // it comes and goes, and nothing is listed
		l.Drop(a.Partition())
		l.Apply(Agent{Agent: a, Phase: "idle", Events: 1})
	}
	if kept := len(l.order) + len(l.added); kept > l.Len() {
		t.Errorf("%d addresses are kept of %d agents", kept, l.Len())
	}
	if list := l.List(AgentFilter{Of: func(p messages.Partition) bool { return p == a.Partition() }}); len(list) != 1 || list[0].Agent != a {
		t.Errorf("of its partition are listed %v", list)
	}
}

func TestAgentsFromManyGoroutines(t *testing.T) {
	var l Agents
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				a := id("t", "k", fmt.Sprint(i%50))
				l.Apply(Agent{Agent: a, Phase: "idle", Events: messages.EventNumber(i)})
				l.List(AgentFilter{Limit: 3})
				l.Agent(a)
			}
		})
	}
	wg.Wait()
	if n := l.Len(); n != 50 {
		t.Errorf("agents: got %d, want 50", n)
	}
}

func TestAgentsAreLean(t *testing.T) {
	const agents = 20000
	var l Agents
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range agents {
		l.Apply(Agent{Agent: id("default", "assistant", fmt.Sprint("user-", i)), Phase: messages.AgentPhase(strings.Clone("idle")), Owner: strings.Clone("n1"), Events: 9, Updated: testTime})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (after.HeapAlloc - before.HeapAlloc) / agents; each > 350 {
		t.Errorf("bytes for each agent: got %d, want at most 350", each)
	} else {
		t.Logf("%d bytes for each agent", each)
	}
	runtime.KeepAlive(&l)
}

func TestEventJSON(t *testing.T) {
	ev := messages.ToolRequested{Turn: "t2", Step: 3, Call: "c", Tool: "f", Arguments: "{}"}
	at := testTime.In(time.FixedZone("", 3600))
	for _, tc := range []struct {
		ev   messages.Event
		want string
	}{
		{ev, `{"n":7,"seq":9,"frame":"F","type":"tool.requested","turn":"t2","step":3,"at":"2026-01-02T03:04:05Z","data":{"turn":"t2","step":3,"call":"c","tool":"f","arguments":"{}"}}`},
		{messages.AgentActivated{Epoch: 2, Previous: 1, Node: "N", Host: "h"}, `{"n":7,"seq":9,"frame":"F","type":"agent.activated","at":"2026-01-02T03:04:05Z","data":{"epoch":2,"previous":1,"node":"N","host":"h"}}`},
		{messages.AgentActivated{Epoch: 2}, `{"n":7,"seq":9,"frame":"F","type":"agent.activated","at":"2026-01-02T03:04:05Z","data":{"epoch":2,"previous":0}}`},
		{messages.StatePatched{}, `{"n":7,"seq":9,"frame":"F","type":"state.patched","at":"2026-01-02T03:04:05Z","data":{}}`},
	} {
		b, err := json.Marshal(NewEventJSON(7, 9, "F", at, tc.ev))
		if err != nil || string(b) != tc.want {
			t.Errorf("got  %s, error %v\nwant %s", b, err, tc.want)
		}
	}
	for _, ev := range []messages.Event{messages.StatePatched{Patch: json.RawMessage("{")}, unencodable{}, new(messages.TurnStarted)} {
		if b, err := json.Marshal(NewEventJSON(1, 1, "F", at, ev)); err != nil {
			t.Errorf("got %s, error %v, want no error", b, err)
		}
	}
}

func TestEventJSONAppend(t *testing.T) {
	at := testTime.In(time.FixedZone("", 3600))
	for i, ev := range append(randomStory(1, 300), unencodable{}, new(messages.TurnStarted), messages.TurnStarted{Turn: "a\"b<\x1b\u2028\xff"}) {
		for _, frame := range []messages.FrameID{"01JZX4", "", "\"},{\n<é"} {
			e := NewEventJSON(messages.EventNumber(i), 9, frame, at, ev)
			if i%2 == 1 {
				e.Person = &messages.Person{Name: "a\"<\u2028é", Claimed: i%3 == 1, Endpoint: "ctl"}
			}
			want, err := json.Marshal(e)
			if got := e.Append(nil); err != nil || string(got) != string(want) {
				t.Fatalf("got  %s\nwant %s, error %v", got, want, err)
			}
		}
	}
}

type unencodable struct{ F float64 }

func (unencodable) EventType() string            { return "test.unencodable" }
func (unencodable) MarshalJSON() ([]byte, error) { return json.Marshal(math.NaN()) }

func TestPrintable(t *testing.T) {
	for _, tc := range []struct {
		in    string
		limit int
		want  string
	}{
		{"plain ✓ text", 0, "plain ✓ text"},
		{"\x1b]0;title\x07\x1b[2J", 0, `\x1b]0;title\a\x1b[2J`},
		{"a\r\nb\tc", 0, `a\r\nb\tc`},
		{"\u009b2J\u202etxt\u200b\u2028\x7f", 0, `\u009b2J\u202etxt\u200b\u2028\x7f`},
		{"\xff\xfe", 0, `\xff\xfe`},
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcde… (1 more bytes)"},
		{"aüüü", 4, "aü… (4 more bytes)"},
		{strings.Repeat("\x80", 9), 8, strings.Repeat(`\x80`, 4) + "… (5 more bytes)"},
	} {
		if got := Printable(tc.in, tc.limit); got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.in, got, tc.want)
		}
	}
}

// A frame may end several turns. Each is listed with what its end holds, and names each of its
// inputs once.
func TestEndedBy(t *testing.T) { // A61
	f := &messages.Frame{First: 7, Time: testTime, Events: []messages.Event{
		messages.TurnFailed{Turn: "t2", Inputs: []string{"u1", "u2", "u1"}, Reason: "model", Kind: "auth", Status: 401, Message: "no key", Steps: 3},
		started("t8", "u3"), messages.TurnAborted{Turn: "t8", Inputs: []string{"u3"}, By: "abort", Reason: "enough", Steps: 1},
		messages.TurnCompleted{Turn: "t9", Finish: "length", Steps: 2},
	}}
	want := []Turn{
		{ID: "t2", Inputs: []string{"u1", "u2"}, Phase: Failed, Reason: "model", Kind: "auth", Status: 401, Message: "no key", Steps: 3, Ended: 7, EndedAt: testTime},
		{ID: "t8", Inputs: []string{"u3"}, Phase: Aborted, Reason: "enough", By: "abort", Steps: 1, Ended: 9, EndedAt: testTime},
		{ID: "t9", Phase: Completed, Finish: "length", Steps: 2, Ended: 10, EndedAt: testTime},
	}
	if got := EndedBy(f); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
