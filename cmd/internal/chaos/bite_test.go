//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// honest is the evidence of two inputs and a command that went well.
func honest(t *testing.T) *evidence {
	const agent = "default/worker/a"
	e := &evidence{
		sent: map[string]*sent{
			"p-1": {ID: "p-1", Agent: agent, Publisher: "p", Number: 1, Command: "input", Life: 1, Plan: plan{{"rerun"}}},
			"p-2": {ID: "p-2", Agent: agent, Publisher: "p", Number: 2, Command: "input", Life: 1},
			"p-3": {ID: "p-3", Agent: agent, Publisher: "p", Number: 3, Command: "input", Life: 2},
			"c-1": {ID: "c-1", Agent: agent, Publisher: "c", Number: 1, Command: "set_state", Life: 1},
			"c-2": {ID: "c-2", Agent: agent, Publisher: "c", Number: 2, Command: "interrupt", Life: 2},
			"c-3": {ID: "c-3", Agent: agent, Publisher: "c", Number: 3, Command: "clear", Life: 3},
		},
		logs: map[string][]client.Event{}, shown: map[string]map[messages.EventNumber]client.Event{agent: {}}, letters: map[string]messages.Code{},
		ledger: []entry{
			{What: "invoked", Tool: "rerun", Key: "k", Attempt: 1, Input: "p-1"},
			{What: "effect", Tool: "rerun", Key: "k", Attempt: 1, Input: "p-1"},
		},
	}
	for _, ev := range []messages.Event{
		messages.InputAccepted{Input: "p-1"},
		messages.TurnStarted{Turn: "t2"},
		messages.ToolRequested{Turn: "t2", Call: "x"},
		messages.ToolStarted{Turn: "t2", Call: "x", Key: "k", OnUnknown: messages.Rerun, Attempt: 1},
		messages.ToolCompleted{Turn: "t2", Call: "x"},
		messages.InputAccepted{Input: "p-2"},
		messages.TurnCompleted{Turn: "t2", Inputs: []string{"p-1"}, Output: "done p-1: rerun:p-1:0"},
		messages.TurnStarted{Turn: "t8"},
		messages.StatePatched{Patch: json.RawMessage(`{"c-1":1}`)},
		messages.TurnAborted{Turn: "t8", Inputs: []string{"p-2"}, By: "interrupt", Reason: "c-2"},
		messages.InputAccepted{Input: "p-3"},
		messages.InputDropped{Input: "p-3", By: "clear", Reason: "c-3"},
		messages.AgentCleared{Reason: "c-3"},
	} {
		data, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		of := struct{ Turn messages.TurnID }{}
		if err := json.Unmarshal(data, &of); err != nil {
			t.Fatal(err)
		}
		n := messages.EventNumber(len(e.logs[agent]) + 1)
		e.logs[agent] = append(e.logs[agent], client.Event{N: n, Type: ev.EventType(), Turn: of.Turn, Data: data})
		e.shown[agent][n] = e.logs[agent][n-1]
	}
	return e
}

// TestProofBites holds that the proof finds each thing that must not be, and
// nothing in what is right.
func TestProofBites(t *testing.T) {
	const agent = "default/worker/a"
	drop := func(n int) func(*evidence) {
		return func(e *evidence) {
			e.logs[agent] = slices.Delete(slices.Clone(e.logs[agent]), n-1, n)
			for i := range e.logs[agent] {
				e.logs[agent][i].N = messages.EventNumber(i + 1)
			}
			e.shown[agent] = nil
		}
	}
	for name, c := range map[string]struct {
		harm func(*evidence)
		want string
	}{
		"nothing":      {func(*evidence) {}, ""},
		"a lost input": {func(e *evidence) { e.sent["p-4"] = &sent{ID: "p-4", Agent: agent, Command: "input", Life: 4} }, "input p-4 (), acknowledged in life 4, is lost"},
		"a lost refusal": {func(e *evidence) {
			e.sent["p-4"] = &sent{ID: "p-4", Agent: agent, Command: "input", Life: 4, Policy: "reject"}
		}, "neither accepted nor refused"},
		"a doubled input":   {func(e *evidence) { e.logs[agent][5] = again(e.logs[agent][0], 6) }, "accepted 2 times"},
		"a strange input":   {func(e *evidence) { delete(e.sent, "p-2") }, "never sent here"},
		"no end":            {drop(7), "ended 0 times"},
		"two ends":          {func(e *evidence) { e.logs[agent][9] = again(e.logs[agent][6], 10) }, "ended 2 times"},
		"another order":     {func(e *evidence) { e.sent["p-1"].Number = 9 }, "the other way round"},
		"a gap":             {func(e *evidence) { e.logs[agent][4].N = 6 }, "event number 6 where 5 is due"},
		"a rewritten event": {func(e *evidence) { e.logs[agent][4].Data = json.RawMessage(`{}`) }, "is another now"},
		"a forgotten event": {func(e *evidence) { e.logs[agent] = e.logs[agent][:12] }, "was shown to a reader and is gone"},
		"turns at once":     {func(e *evidence) { e.logs[agent][4] = again(e.logs[agent][7], 5) }, "began while t2 ran"},
		"a turn for ever":   {drop(10), "turn t8 has not ended"},
		"a failed turn":     {func(e *evidence) { e.logs[agent][9].Type = "turn.failed" }, "turn t8 failed"},
		"a wrong answer":    {func(e *evidence) { e.sent["p-1"].Plan = nil }, `should have said "done p-1:"`},
		"no outcome":        {drop(5), "has 0 outcomes"},
		"an effect unasked": {drop(3), "not asked for in this turn"},
		"no intent":         {drop(4), "no tool.started in a log says so"},
		"another key":       {func(e *evidence) { e.logs[agent][4] = started(e.logs[agent][3], `"k2"`, 2) }, "has two keys"},
		"a skipped attempt": {func(e *evidence) { e.logs[agent][4] = started(e.logs[agent][3], `"k"`, 3) }, "attempt 3 of call x follows attempt 1"},
		"no approval": {func(e *evidence) {
			e.logs[agent][3].Data = json.RawMessage(`{"call":"x","tool":"gated","key":"k","on_unknown":"rerun","attempt":1}`)
		}, "started after the decisions []"},
		"a lost decision": {func(e *evidence) { e.decided = []decided{{callOf{agent, "x"}, "approval.granted", 3}} }, "decision about call x is lost"},
		"a lost retry":    {func(e *evidence) { e.decided = []decided{{callOf{agent, "x"}, "tool.started", 4}} }, "no tool.started after event 4"},
		"two readings": {func(e *evidence) {
			b := newBook()
			b.see(agent, e.logs[agent][0])
			b.see(agent, again(e.logs[agent][1], 1))
			e.differ = b.differ
		}, shownTwice},
		"a needless doubt": {func(e *evidence) { e.logs[agent][4].Type = "tool.unknown" }, "need not be unknown"},
		"nothing earned":   {func(e *evidence) { e.ledger = e.ledger[:1] }, "the ledger has no effect under key k"},
		"an attempt twice": {func(e *evidence) { e.ledger = append(e.ledger, e.ledger[0]) }, "attempt 1 of k ran 2 times"},
		"an effect twice":  {func(e *evidence) { e.ledger = append(e.ledger, e.ledger[1]) }, "2 effects under key k"},
		"two calls as one": {func(e *evidence) {
			e.ledger = append(e.ledger, entry{What: "effect", Tool: "rerun", Key: "k2", Attempt: 1, Input: "p-1"})
		}, "call 0 of input p-1 had its effect 2 times"},
		"a lost command":    {drop(9), "set_state c-1, answered in life 1, is lost"},
		"a lost clear":      {drop(13), "1 commands clear changed nothing, 0 of them are in the log"},
		"a dropped input":   {drop(12), "input p-3 was accepted 1 times and ended 0 times"},
		"a doubled clear":   {func(e *evidence) { e.logs[agent][11] = again(e.logs[agent][12], 12) }, "clear c-3 (refused: \"\") had 2 effects"},
		"a doubled command": {func(e *evidence) { e.logs[agent][4] = again(e.logs[agent][8], 5) }, "had 2 effects"},
		"a lost interrupt":  {func(e *evidence) { e.sent["c-4"] = &sent{ID: "c-4", Agent: agent, Command: "interrupt", Life: 2} }, "1 commands interrupt changed nothing, 0 of them are in the log"},
		"a refused effect":  {func(e *evidence) { e.sent["c-1"].Refused = messages.Conflict }, `(refused: "conflict") had 1 effects`},
	} {
		t.Run(name, func(t *testing.T) {
			e := honest(t)
			c.harm(e)
			found := fmt.Sprint(e.prove())
			if c.want == "" && found != "[]" || !strings.Contains(found, c.want) {
				t.Errorf("want %q, found %s", c.want, found)
			}
		})
	}
}

// again is an event once more, under another number.
func again(ev client.Event, n messages.EventNumber) client.Event {
	ev.N = n
	return ev
}

// started is a tool.started of the same call as number 5.
func started(ev client.Event, key string, attempt int) client.Event {
	ev.N, ev.Data = 5, json.RawMessage(fmt.Sprintf(`{"turn":"t2","call":"x","on_unknown":"rerun","key":%s,"attempt":%d}`, key, attempt))
	return ev
}
