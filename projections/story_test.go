package projections

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// all holds every view of one agent.
type all struct {
	History History
	State   State
	Turns   Turns
	Usage   Usage
	Work    Work
	Decided Decisions
	Effects Effects
}

func (a *all) views() []View {
	return []View{&a.History, &a.State, &a.Turns, &a.Usage, &a.Work, &a.Decided, &a.Effects}
}

func (a *all) At(at time.Time, by *messages.Person) {
	for _, v := range a.views() {
		if v, ok := v.(Timed); ok {
			v.At(at, by)
		}
	}
}

func (a *all) Apply(n messages.EventNumber, ev messages.Event) {
	for _, v := range a.views() {
		v.Apply(n, ev)
	}
}

// shown returns the content of all views, as JSON.
func (a *all) shown(t testing.TB) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"items": a.History.Items(), "view": a.History.View(), "len": a.History.Len(), "digest": a.History.Digest("x"), "size": a.History.Size(),
		"state": a.State.JSON(), "turns": a.Turns.List(),
		"calls": a.Usage.Calls(), "total": a.Usage.Total(),
		"inputs": a.Work.Inputs.QueuedIDs(), "steered": a.Work.Inputs.SteeredIDs(), "waiting": a.Work.Waiting(), "approvals": a.Work.Approvals(messages.AgentID{}),
		"lines": a.Usage.Lines(), "accounts": a.Work.Budgets(), "remembered": a.Decided.Remembered(messages.AgentID{}),
		"effects": a.Effects.List(messages.AgentID{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// story generates events, which need not be consistent. pick(n) returns a number below n.
type story struct{ pick func(n int) int }

func (s story) one(of ...string) string   { return of[s.pick(len(of))] }
func (s story) turn() messages.TurnID     { return messages.TurnID(s.one("t1", "t2", "t3", "")) }
func (s story) call() messages.CallID     { return messages.CallID(s.one("c1", "c2", "c3", "")) }
func (s story) usage() messages.Usage     { return messages.Usage{Input: s.pick(9), Output: s.pick(5)} }
func (s story) inputs() (ids []string)    { return []string{"u1", "u2", "u3"}[:s.pick(4)] }
func (s story) input() string             { return s.one("u1", "u2", "u3") }
func (s story) scope() messages.Scope     { return messages.Scope(s.one("turn", "agent")) }
func (s story) timer() string             { return s.one("d1", "d2") }
func (s story) text() string              { return s.one("", "hello", "\x1b[2J\xff\u202e", "a\nb") }
func (s story) content() messages.Content { return messages.TextContent(s.text())[:s.pick(2)] }
func (s story) patch() json.RawMessage {
	return json.RawMessage(s.one(`{"a":1}`, `{"a":null,"b":{"c":[1,null]}}`, `{"b":{"c":null,"d":1.50}}`, `{"b":2}`, `[1]`, `null`, `7`, `{`, ``))
}

func (s story) items() (items []messages.Item) {
	for range s.pick(5) {
		switch s.pick(4) {
		case 0:
			items = append(items, messages.Text(s.one("assistant", "user", "developer", "other"), s.text()))
		case 1:
			items = append(items, messages.Item{Type: messages.ItemReasoning, Raw: json.RawMessage(`{"x":1}`), Provider: "p"})
		default:
			items = append(items, messages.Item{Type: messages.ItemCall, CallID: s.call(), Name: "f", Arguments: s.text()})
		}
	}
	return items
}

func (s story) event() messages.Event {
	switch s.pick(23) {
	case 0, 1:
		return messages.InputAccepted{Input: s.input(), Content: s.content(), Disposition: messages.Disposition(s.one("queued", "steered")), Turn: s.turn()}
	case 2, 3:
		return messages.TurnStarted{Turn: s.turn(), Inputs: s.inputs(), Continues: s.turn(), Steps: s.pick(3)}
	case 4:
		return messages.ModelRequested{Turn: s.turn(), Step: s.pick(4), Call: s.call(), Model: "m", Inputs: s.inputs()}
	case 5, 6:
		return messages.ModelCompleted{Turn: s.turn(), Step: s.pick(4), Call: s.call(), Items: s.items(), Usage: s.usage()}
	case 7:
		return messages.ModelFailed{Turn: s.turn(), Call: s.call(), Kind: "rate_limit", Usage: s.usage()}
	case 8, 9:
		return messages.ToolCompleted{Turn: s.turn(), Call: s.call(), Output: s.text()}
	case 10:
		return messages.ToolFailed{Turn: s.turn(), Call: s.call(), Message: s.text()}
	case 11:
		return messages.ToolSkipped{Turn: s.turn(), Call: s.call(), Reason: s.text()}
	case 12:
		return messages.ToolUnknown{Turn: s.turn(), Call: s.call(), Reason: s.text()}
	case 13:
		return messages.TurnCompleted{Turn: s.turn(), Inputs: s.inputs(), Steps: s.pick(4)}
	case 14:
		return messages.TurnFailed{Turn: s.turn(), Inputs: s.inputs(), Reason: "model", Withheld: messages.EventNumber(s.pick(40)), Note: s.text()}
	case 15:
		return messages.TurnAborted{Turn: s.turn(), Inputs: s.inputs(), Note: s.text()}
	case 16:
		return messages.StatePatched{Patch: s.patch()}
	case 17:
		return messages.ToolStarted{Turn: s.turn(), Call: s.call(), Tool: "f"}
	}
	if s.pick(2) == 0 {
		return s.approval()
	}
	return s.rest()
}

func (s story) approval() messages.Event {
	switch s.pick(7) {
	case 0:
		return messages.ToolRequested{Turn: s.turn(), Call: s.call(), Tool: "f", Arguments: s.text()}
	case 1, 2:
		at := testTime
		return messages.ApprovalRequested{Turn: s.turn(), Call: s.call(), Tool: "f", Arguments: s.text(), ArgsHash: "h", ExpiresAt: &at}
	case 3:
		return messages.ApprovalGranted{Turn: s.turn(), Call: s.call(), Tool: s.one("f", "g"), Remember: s.pick(2) == 0}
	case 4:
		return messages.ApprovalDenied{Turn: s.turn(), Call: s.call(), Tool: s.one("f", "g"), Text: s.text(), Remember: s.pick(2) == 0}
	case 5:
		return messages.ToolDenied{Turn: s.turn(), Call: s.call(), Message: s.text()}
	}
	return messages.ToolFlagged{Turn: s.turn(), Call: s.call(), Tool: "f", Of: s.call()}
}

func (s story) rest() messages.Event {
	switch s.pick(13) {
	case 0:
		return messages.InputRequeued{Input: s.input(), Turn: s.turn()}
	case 1:
		return messages.InputCancelled{Input: s.input()}
	case 2:
		return messages.InputDropped{Input: s.input(), By: "clear"}
	case 3:
		return messages.AgentCleared{}
	case 4:
		return messages.HookDecided{Turn: s.turn(), Call: s.call(), Answer: s.text(), Note: s.text(), Arguments: s.text()}
	case 5:
		return messages.BudgetReserved{Turn: s.turn(), Tokens: s.pick(9)}
	case 6:
		return messages.BudgetSettled{Turn: s.turn(), Call: s.call(), Tokens: s.pick(9), Unknown: s.pick(2) == 0}
	case 7:
		return messages.BudgetRaised{Turn: s.turn(), Scope: s.scope(), Limits: messages.Limits{MaxTokens: s.pick(9), MaxDuration: 1000}}
	case 8:
		return messages.TimerSet{Turn: s.turn(), Timer: s.timer(), For: s.one("duration", "retry"), Set: testTime, At: testTime}
	case 9:
		return messages.TimerCancelled{Turn: s.turn(), Timer: s.timer(), Ran: int64(s.pick(9))}
	case 10:
		return messages.ApprovalForgotten{Tool: "f"}
	case 11:
		return messages.BudgetExhausted{Turn: s.turn(), Scope: s.scope(), Limit: messages.Limit(s.one("max_tokens", "max_steps")), Message: s.text()}
	}
	return []messages.Event{messages.TurnPaused{Turn: s.turn(), Reason: s.one("max_tokens", "approval")}, messages.TurnResumed{Turn: s.turn()}, messages.AgentCreated{}, messages.ModelRestarted{Call: s.call()}}[s.pick(4)]
}

func randomStory(seed uint64, length int) []messages.Event {
	s := story{rand.New(rand.NewPCG(seed, 1)).IntN}
	events := make([]messages.Event, length)
	for i := range events {
		events[i] = s.event()
	}
	return events
}

// frames cuts a story into frames of different sizes.
func frames(events []messages.Event) (list []*messages.Frame) {
	for first := 0; first < len(events); {
		n := min(1+first%4, len(events)-first)
		list = append(list, &messages.Frame{First: messages.EventNumber(first + 1), Events: events[first : first+n], Time: testTime.Add(time.Duration(first) * time.Second)})
		first += n
	}
	return list
}

// The views as of event n equal those of the time when n was the newest event, also if the views
// were read in between.
func TestViewsAsOfAnyEvent(t *testing.T) { // A80
	for seed := range uint64(30) {
		events := randomStory(seed, 80)
		var live all
		var then []string // views when event i+1 was the newest
		for _, f := range frames(events) {
			live.At(f.Time, nil)
			for i, ev := range f.Events {
				live.Apply(f.First+messages.EventNumber(i), ev)
				then = append(then, live.shown(t))
			}
		}
		for n := 1; n <= len(events); n += 7 {
			var a all
			for _, f := range frames(events) {
				if !Fold(f, messages.EventNumber(n), &a) {
					break
				}
			}
			if got := a.shown(t); got != then[n-1] {
				t.Fatalf("seed %d, as of event %d\ngot  %s\nwant %s", seed, n, got, then[n-1])
			}
		}
	}
}

// Reading the views after a prefix of the events does not change what the rest adds.
func TestPrefixThenRest(t *testing.T) { // A80
	events := randomStory(99, 120)
	var whole all
	for i, ev := range events {
		whole.Apply(messages.EventNumber(i+1), ev)
	}
	for k := range events {
		var a all
		for i, ev := range events[:k] {
			a.Apply(messages.EventNumber(i+1), ev)
		}
		a.shown(t)
		for i, ev := range events[k:] {
			a.Apply(messages.EventNumber(k+i+1), ev)
		}
		if a.shown(t) != whole.shown(t) {
			t.Fatalf("prefix of %d\ngot  %s\nwant %s", k, a.shown(t), whole.shown(t))
		}
	}
}

func TestFoldStopsAtN(t *testing.T) {
	events := randomStory(1, 3)
	f := &messages.Frame{First: 5, Events: events}
	for _, tc := range []struct {
		upto messages.EventNumber
		want []messages.EventNumber
		more bool
	}{
		{0, []messages.EventNumber{5, 6, 7}, true}, {4, nil, false}, {5, []messages.EventNumber{5}, false},
		{7, []messages.EventNumber{5, 6, 7}, false}, {8, []messages.EventNumber{5, 6, 7}, true},
	} {
		var seen numbers
		if more := Fold(f, tc.upto, &seen); more != tc.more || !reflect.DeepEqual([]messages.EventNumber(seen), tc.want) {
			t.Errorf("up to %d: got %v, more %t, want %v, more %t", tc.upto, seen, more, tc.want, tc.more)
		}
	}
}

type numbers []messages.EventNumber

func (s *numbers) Apply(n messages.EventNumber, _ messages.Event) { *s = append(*s, n) }

// checkStory checks invariants that hold after any events.
func checkStory(t *testing.T, a *all) {
	t.Helper()
	items := a.History.Items()
	if len(items) != a.History.Len() || len(a.History.View()) != len(items) {
		t.Fatalf("items: got length %d, %d in the view, want %d", a.History.Len(), len(a.History.View()), len(items))
	}
	for i, v := range a.History.View() {
		if !reflect.DeepEqual(v.Item, items[i]) || v.N == 0 {
			t.Fatalf("item %d of the view: got %+v, want %+v as for the model", i, v, items[i])
		}
	}
	if !json.Valid(a.State.JSON()) {
		t.Fatalf("state: got %s, want valid JSON", a.State.JSON())
	}
	size := 0
	for _, item := range items {
		size += sizeOf(item)
	}
	if a.History.Size() != size {
		t.Fatalf("size: got %d, want %d", a.History.Size(), size)
	}
	arguments := 0
	for _, c := range a.Effects.List(messages.AgentID{}) {
		arguments += len(c.Arguments)
	}
	if a.Effects.Size() != arguments {
		t.Fatalf("bytes of arguments: got %d, want %d", a.Effects.Size(), arguments)
	}
	checkUsage(t, &a.Usage)
}

// checkUsage compares the sums by turn and by model with the total.
func checkUsage(t *testing.T, u *Usage) { // A52
	t.Helper()
	sums := make(map[string]Used)
	for _, l := range u.Lines() {
		sum := sums[l.Type]
		sums[l.Type] = Used{sum.Calls + l.Calls, sum.Lost + l.Lost, sum.Usage.Add(l.Usage), sum.Cost + l.Cost}
	}
	for kind, sum := range sums {
		if sum != u.Total() {
			t.Fatalf("sum of the lines of type %s: got %+v, want %+v", kind, sum, u.Total())
		}
	}
}

func FuzzStory(f *testing.F) {
	f.Add([]byte("a turn with two calls"))
	for seed := range uint64(8) {
		r, b := rand.New(rand.NewPCG(seed, 2)), make([]byte, 400)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := story{func(n int) int {
			if len(b) == 0 {
				return 0
			}
			c := int(b[0]) % n
			b = b[1:]
			return c
		}}
		var a all
		var r Replay
		for n := messages.EventNumber(1); len(b) > 0 && n < 1000; n++ {
			ev := s.event()
			a.Apply(n, ev)
			c := r.Step(n, testTime, uint64(n), ev)
			if err := c.WriteText(terminal{t}); err != nil {
				t.Fatal(err)
			}
			if _, err := json.Marshal(c); err != nil {
				t.Fatal(err)
			}
			if _, err := json.Marshal(NewEventJSON(n, 1, "f", testTime, ev)); err != nil {
				t.Fatal(err)
			}
		}
		checkStory(t, &a)
		if fmt.Sprint(a.History.View()) != fmt.Sprint(r.History.View()) {
			t.Fatalf("history of the replay: got %v, want %v", r.History.View(), a.History.View())
		}
		a.shown(t)
	})
}

// terminal fails the test if it is written other than printable text and newlines.
type terminal struct{ t *testing.T }

func (w terminal) Write(b []byte) (int, error) {
	for _, line := range splitLines(string(b)) {
		if Printable(line, 0) != line {
			w.t.Fatalf("line: got %q, want only printable text", line)
		}
	}
	return len(b), nil
}
