package projections

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

func effectsOf(events ...messages.Event) []Effect {
	var e Effects
	for i, ev := range events {
		e.At(second(i), nil)
		e.Apply(messages.EventNumber(i+1), ev)
	}
	return e.List(messages.AgentID{})
}

func second(i int) time.Time { return testTime.Add(time.Duration(i) * time.Second) }

func TestEffects(t *testing.T) { // A33, A43
	expires := testTime.Add(time.Hour)
	got := effectsOf(
		messages.ToolRequested{Turn: "t1", Step: 1, Call: "c1", Tool: "look", Arguments: `{"w":1}`},
		messages.ToolRequested{Turn: "t1", Step: 1, Call: "c2", Tool: "refund", Arguments: `{"order":7}`},
		messages.ToolRequested{Turn: "t1", Step: 1, Call: "c3", Tool: "refund", Arguments: `{"order":8}`},
		messages.ToolStarted{Turn: "t1", Call: "c1", Tool: "look", OnUnknown: messages.ReadOnly, Key: "k1", Attempt: 1},
		messages.HookDecided{Turn: "t1", Call: "c2", Decision: "rewrite", Arguments: `{"order":9}`},
		messages.ToolFlagged{Turn: "t1", Call: "c2", Tool: "refund", Of: "c0"},
		messages.ApprovalRequested{Turn: "t1", Call: "c2", Tool: "refund", Arguments: `{"order":9}`, ArgsHash: "h2", Reason: "much", ExpiresAt: &expires},
		messages.ApprovalRequested{Turn: "t1", Call: "c3", Tool: "refund", Arguments: `{"order":8}`, ArgsHash: "h3"},
		messages.ToolFailed{Turn: "t1", Call: "c1", Kind: "panic", Message: strings.Repeat("é", MaxPreview)},
		messages.ApprovalGranted{Turn: "t1", Call: "c2", Tool: "refund", By: "decision"},
		messages.ToolStarted{Turn: "t1", Call: "c2", Tool: "refund", OnUnknown: messages.Pause, Key: "k2", Attempt: 1, Arguments: `{"order":9}`},
		messages.ToolUnknown{Turn: "t1", Call: "c2", Reason: "lost"},
		messages.ToolStarted{Turn: "t1", Call: "c2", Tool: "refund", OnUnknown: messages.Pause, Key: "k2", Attempt: 2, Arguments: `{"order":9}`},
		messages.ToolCompleted{Turn: "t1", Call: "c2", Output: "paid", By: "decision"},
		messages.ToolCompleted{Turn: "t1", Call: "c1", Output: "late"}, // its call has ended: an effect of its own
	)
	want := []Effect{
		{N: 1, At: second(0), ToolCall: ToolCall{Turn: "t1", Step: 1, ID: "c1", Tool: "look", OnUnknown: messages.ReadOnly, Key: "k1", Arguments: `{"w":1}`, Attempt: 1, Outcome: CallFailed, Kind: "panic",
			Output: strings.Repeat("é", MaxPreview/2), OutputBytes: 2 * MaxPreview, Started: 4, StartedAt: second(3), Ended: 9, EndedAt: second(8)}},
		{N: 2, At: second(1), ToolCall: ToolCall{Turn: "t1", Step: 1, ID: "c2", Tool: "refund", OnUnknown: messages.Pause, Key: "k2", Arguments: `{"order":9}`, Rewritten: true, Attempt: 2, Outcome: CallCompleted, By: "decision",
			Output: "paid", OutputBytes: 4, Flagged: "c0", Approval: "granted", ApprovedBy: "decision", Started: 11, StartedAt: second(10), Ended: 14, EndedAt: second(13)}},
		{N: 3, At: second(2), ToolCall: ToolCall{Turn: "t1", Step: 1, ID: "c3", Tool: "refund", Arguments: `{"order":8}`, Outcome: CallWaiting, ArgsHash: "h3", Asked: 8, AskedAt: second(7)}},
		{N: 15, At: second(14), ToolCall: ToolCall{Turn: "t1", ID: "c1", Outcome: CallCompleted, Output: "late", OutputBytes: 4, Ended: 15, EndedAt: second(14)}},
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("effect %d\ngot  %+v\nwant %+v", i, got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
		}
	}
}

func TestEffectsEndWithTheirTurn(t *testing.T) { // A12, A42
	got := effectsOf(
		messages.ToolRequested{Turn: "t1", Call: "c1", Tool: "a"}, messages.ToolRequested{Turn: "t1", Call: "c2", Tool: "b"},
		messages.ToolRequested{Turn: "t1", Call: "c3", Tool: "b"}, messages.ToolRequested{Turn: "t1", Call: "c4", Tool: "b"},
		messages.ToolStarted{Turn: "t1", Call: "c2", Tool: "b", Attempt: 1},
		messages.ApprovalRequested{Turn: "t1", Call: "c3", Tool: "b"}, messages.ApprovalDenied{Turn: "t1", Call: "c3", By: "timeout"}, messages.ToolDenied{Turn: "t1", Call: "c3", Message: "no"},
		messages.ToolSkipped{Turn: "t1", Call: "c4", Reason: "hook"},
		messages.TurnAborted{Turn: "t1"},
		messages.ToolRequested{Turn: "t11", Call: "c1", Tool: "a"}, // the same name again
	)
	var outcomes []string
	for _, e := range got {
		outcomes = append(outcomes, string(e.ID)+" "+string(e.Outcome)+" "+string(e.By))
	}
	if want := []string{"c1 skipped ", "c2 unknown ", "c3 denied timeout", "c4 skipped ", "c1 requested "}; !reflect.DeepEqual(outcomes, want) {
		t.Errorf("got  %q\nwant %q", outcomes, want)
	}
}

func TestEffectsKeptAsBlobs(t *testing.T) {
	blob := &messages.Blob{SHA256: "x", Size: 1 << 20}
	got := effectsOf(messages.ToolRequested{Turn: "t", Call: "c"}, messages.ToolCompleted{Turn: "t", Call: "c", Blob: blob})
	if len(got) != 1 || got[0].OutputBytes != 1<<20 || got[0].Output != "" {
		t.Errorf("effects: got %+v, want one of %d bytes without output", got, blob.Size)
	}
	if got := effectsOf(messages.ToolRequested{Turn: "t", Call: "c"}, messages.AgentDeleted{}); len(got) != 0 {
		t.Errorf("effects of a deleted agent: got %+v, want none", got)
	}
}

// A projection that continues from the open calls has the same effects as one that applied all events.
func TestEffectsAfter(t *testing.T) { // A80
	for seed := range uint64(40) {
		events := randomStory(seed, 100)
		var whole Effects
		for i, ev := range events {
			whole.Apply(messages.EventNumber(i+1), ev)
		}
		rows := make(map[messages.EventNumber]Effect)
		var open []Effect
		for i, ev := range events {
			part := EffectsAfter(open)
			part.Apply(messages.EventNumber(i+1), ev)
			open = nil
			for _, c := range part.List(messages.AgentID{}) {
				rows[c.N] = c
				if c.Ended == 0 {
					open = append(open, c)
				}
			}
		}
		all := whole.List(messages.AgentID{})
		if len(all) != len(rows) {
			t.Fatalf("seed %d: calls in parts: got %d, want %d", seed, len(rows), len(all))
		}
		for _, c := range all {
			if !reflect.DeepEqual(c, rows[c.N]) {
				t.Fatalf("seed %d\ngot  %+v\nwant %+v", seed, rows[c.N], c)
			}
		}
	}
}

func TestWhere(t *testing.T) {
	e := Effect{At: testTime, ToolCall: ToolCall{Tool: "refund", Outcome: CallCompleted,
		Arguments: `{"order":7,"who":{"name":"Ann\nLee","tags":["a","b=c"],"vip":true},"sum":1.50,"none":null,"a=b":"x\\y"}`}}
	yes := []EffectFilter{
		{}, {Tool: "refund"}, {Outcome: CallCompleted}, {Since: testTime}, {Until: testTime.Add(1)},
		{Where: map[string]string{"order": "7"}}, {Where: map[string]string{"order": "7", "who.vip": "true"}},
		{Where: map[string]string{"who.name": "Ann\nLee"}}, {Where: map[string]string{"who.tags.1": "b=c"}},
		{Where: map[string]string{"sum": "1.50"}}, {Where: map[string]string{"none": "null"}}, {Where: map[string]string{"a=b": `x\y`}},
	}
	no := []EffectFilter{
		{Tool: "refunds"}, {Outcome: CallFailed}, {Since: testTime.Add(1)}, {Until: testTime},
		{Where: map[string]string{"order": "70"}}, {Where: map[string]string{"order": ""}}, {Where: map[string]string{"order": "7", "who.vip": "false"}},
		{Where: map[string]string{"rder": "7"}}, {Where: map[string]string{"who": "Ann"}}, {Where: map[string]string{"who.name": "Ann"}},
		{Where: map[string]string{"a": "b=x\\y"}}, {Where: map[string]string{"sum": "1.5"}},
	}
	for i, f := range append(yes, no...) {
		if got := f.Admits(&e); got != (i < len(yes)) {
			t.Errorf("%+v: got %t, want %t", f, got, i < len(yes))
		}
	}
	for _, arguments := range []string{"", "no json", `{"order":`, `{"x":"` + strings.Repeat("y", maxLeaf) + `"}`} {
		if got := Leaves(arguments); strings.Contains(got, "=") {
			t.Errorf("leaves of %.20q: got %q, want none", arguments, got)
		}
	}
	deep := `{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `,"y":[` + strings.Repeat("1,", 1<<16) + `1]}`
	if got := Leaves(deep); len(got) > maxLeaves {
		t.Errorf("leaves: got %d bytes, want at most %d", len(got), maxLeaves)
	}
}

// A call repeats the newest earlier one of its agent that asked for the same and may have had its
// effect.
func TestMarkRepeats(t *testing.T) {
	call := func(tool, arguments string, on messages.OnUnknown, started messages.EventNumber, kind messages.ToolFailure) ToolCall {
		return ToolCall{Tool: tool, Arguments: arguments, OnUnknown: on, Started: started, Kind: kind}
	}
	failed := func(arguments string, attempts int, by messages.By) ToolCall {
		c := call("pay", arguments, messages.Rerun, 1, messages.ToolFailureError)
		c.Attempt, c.By = attempts, by
		return c
	}
	dry := call("pay", `{"to":"bob","cents":5}`, messages.Pause, 21, "")
	dry.Dry = true
	calls := []Effect{
		{N: 1, ToolCall: call("pay", `{"to":"bob","cents":5}`, messages.Pause, 2, "")},
		{N: 3, ToolCall: call("pay", `{ "cents": 5.0, "to": "bob" }`, messages.Rerun, 4, messages.ToolFailureError)},                       // the first again; it had no effect
		{N: 5, ToolCall: call("pay", `{"to":"bob","cents":5}`, "", 0, "")},                                                                 // the first again; it never ran
		{N: 6, ToolCall: call("pay", `{"to":"bob","cents":5}`, messages.Reconcile, 7, messages.ToolFailureTimeout)},                        // the first again
		{N: 8, ToolCall: call("pay", `{"to":"bob","cents":5}`, messages.Pause, 9, "")},                                                     // the one before
		{N: 10, ToolCall: call("pay", `{"to":"bob","cents":6}`, messages.Pause, 11, "")},                                                   // another amount
		{N: 12, ToolCall: call("look", `{}`, messages.ReadOnly, 13, "")}, {N: 14, ToolCall: call("look", `{}`, messages.ReadOnly, 15, "")}, // they read
		{N: 16, ToolCall: call("payto", `{"bob":5}`, messages.Pause, 17, "")}, {N: 18, ToolCall: call("pay", `to{"bob":5}`, messages.Pause, 19, "")},
		{N: 20, ToolCall: failed(`{"run":2}`, 2, "")}, {N: 21, ToolCall: failed(`{"run":2}`, 1, "")}, // the run before may have acted
		{N: 22, ToolCall: failed(`{"run":1}`, 1, messages.ByDecision)}, {N: 23, ToolCall: failed(`{"run":1}`, 1, "")}, // the person may be wrong
		{N: 24, ToolCall: failed(`{"run":3}`, 3, messages.ByReconcile)}, {N: 25, ToolCall: failed(`{"run":3}`, 1, messages.By(""))}, // the tool knows of all runs
		{N: 30, ToolCall: dry}, {N: 32, ToolCall: dry}, // the one of event 8, which no dry call is
	}
	MarkRepeats(calls)
	var got []messages.EventNumber
	for _, c := range calls {
		got = append(got, c.Repeats)
	}
	if want := []messages.EventNumber{0, 1, 1, 1, 6, 0, 0, 0, 0, 0, 0, 20, 0, 22, 0, 0, 8, 8}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
