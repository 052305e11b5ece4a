//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// family is the evidence of a call that is another agent's task, of an input that
// came later, and of an agent in its second life.
func family(t *testing.T) *evidence {
	const root, child, reborn = "default/worker/a", "default/helper/sub-x", "default/worker/m0"
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	said := entry{Tool: "rerun", Input: "p-1.0"}.result()
	e := &evidence{
		sent: map[string]*sent{
			"p-1":    {ID: "p-1", Agent: root, Publisher: "p", Number: 1, Command: "input", Life: 1, Plan: plan{{"ask:rerun"}}, At: begun.Add(-2 * time.Second), Delay: time.Second},
			"task:x": {ID: "task:x", Agent: child, Publisher: "task:x", Command: "task", Said: "p-1.0", Plan: plan{{"rerun"}}},
		},
		logs: make(map[string][]client.Event), shown: make(map[string]map[messages.EventNumber]client.Event),
		letters: make(map[string]messages.Code), children: []string{child},
		mortals: []*mortal{{agent: reborn, life: 2, tombstone: 8, sent: map[string]bool{"m0-1": true}}},
		ledger: []entry{
			{What: "invoked", Tool: "rerun", Key: "k", Attempt: 1, Agent: child, Input: "p-1.0"},
			{What: "effect", Tool: "rerun", Key: "k", Attempt: 1, Agent: child, Input: "p-1.0"},
		},
	}
	write := func(agent string, first messages.EventNumber, events ...messages.Event) {
		for i, ev := range events {
			data, err := json.Marshal(ev)
			if err != nil {
				t.Fatal(err)
			}
			of := struct{ Turn messages.TurnID }{}
			if err := json.Unmarshal(data, &of); err != nil {
				t.Fatal(err)
			}
			e.logs[agent] = append(e.logs[agent], client.Event{N: first + messages.EventNumber(i), Type: ev.EventType(), Turn: of.Turn, Data: data, At: begun})
		}
	}
	answer := "done p-1.0: " + said
	write(root, 1,
		messages.InputAccepted{Input: "p-1"},
		messages.TurnStarted{Turn: "t2"},
		messages.ToolRequested{Turn: "t2", Call: "x", Tool: ask, Arguments: `{"input":"do p-1.0: rerun"}`},
		messages.ToolStarted{Turn: "t2", Call: "x", Tool: ask, Key: "r", Attempt: 1},
		messages.ChildSpawned{Turn: "t2", Call: "x", Tool: ask, Child: child, Input: "task:x"},
		messages.ChildCompleted{Turn: "t2", Call: "x", Child: child, N: 6},
		messages.ToolCompleted{Turn: "t2", Call: "x", Output: answer},
		messages.TurnCompleted{Turn: "t2", Inputs: []string{"p-1"}, Output: "done p-1: sha256:" + string(digest(answer))})
	write(child, 1,
		messages.InputAccepted{Input: "task:x", Content: messages.TextContent("do p-1.0: rerun"), Parent: &messages.Parent{Caller: messages.Caller{Agent: root, Turn: "t2", Call: "x"}}},
		messages.TurnStarted{Turn: "t2"},
		messages.ToolRequested{Turn: "t2", Call: "y", Tool: "rerun", Arguments: `{"input":"p-1.0","position":0}`},
		messages.ToolStarted{Turn: "t2", Call: "y", Tool: "rerun", Key: "k", OnUnknown: messages.Rerun, Attempt: 1},
		messages.ToolCompleted{Turn: "t2", Call: "y", Output: said},
		messages.TurnCompleted{Turn: "t2", Inputs: []string{"task:x"}, Output: answer})
	write(reborn, 8,
		messages.AgentDeleted{},
		messages.InputAccepted{Input: "m0-1", Content: messages.TextContent("do m0-1_2:")},
		messages.TurnStarted{Turn: "t10"},
		messages.TurnCompleted{Turn: "t10", Inputs: []string{"m0-1"}, Output: "done m0-1_2:"})
	return e
}

// TestProofBitesBelow holds that the proof finds what must not be of children,
// of large payloads, of what comes later, and of agents that were deleted.
func TestProofBitesBelow(t *testing.T) {
	const root, child, reborn = "default/worker/a", "default/helper/sub-x", "default/worker/m0"
	rewrite := func(agent string, n int, data string) func(*evidence) {
		return func(e *evidence) { e.logs[agent][n-1].Data = json.RawMessage(data) }
	}
	for name, c := range map[string]struct {
		harm func(*evidence)
		want string
	}{
		"nothing":           {func(*evidence) {}, ""},
		"no end of a child": {func(e *evidence) { e.logs[root][5].Type = "child.resumed" }, "the child of call x ended 0 times"},
		"two ends":          {func(e *evidence) { e.logs[root] = slices.Insert(e.logs[root], 6, e.logs[root][5]) }, "the child of call x ended 2 times"},
		"another end":       {rewrite(root, 6, `{"turn":"t2","call":"x","n":5}`), "the child did not end with event 5"},
		"an end to come":    {rewrite(root, 6, `{"turn":"t2","call":"x","n":7}`), "has 6 events"},
		"another answer":    {rewrite(root, 7, `{"turn":"t2","call":"x","output":"else"}`), "is not that of the call"},
		"a strange task":    {rewrite(root, 5, `{"turn":"t2","call":"x","input":"task:y"}`), "has no child.spawned for this task"},
		"another payload": {rewrite(child, 5, `{"turn":"t2","call":"y","blob":{"sha256":"00","size":1}}`),
			"not byte for byte what the program said"},
		"deleted unasked": {func(e *evidence) { e.logs[child] = []client.Event{{N: 7, Type: "agent.deleted"}} }, "nobody asked for that"},
		"made again": {func(e *evidence) {
			e.logs[child] = append([]client.Event{{N: 7, Type: "agent.deleted"}}, e.logs[child]...)
		}, "input.accepted of an agent that was deleted"},
		"too early":          {func(e *evidence) { e.sent["p-1"].Delay = time.Minute }, "came before"},
		"an old number":      {func(e *evidence) { e.mortals[0].tombstone = 9 }, "the tombstone is 9"},
		"a gap":              {func(e *evidence) { e.logs[reborn][2].N = 12 }, "event number 12 where 10 is due"},
		"an old input":       {rewrite(reborn, 2, `{"input":"m0-1","content":"do m0-1_1:"}`), "an input of an earlier life was accepted in life 2"},
		"a lost second life": {func(e *evidence) { e.mortals[0].sent["m0-2"] = true }, "input m0-2 of life 2 was accepted 0 times"},
	} {
		t.Run(name, func(t *testing.T) {
			e := family(t)
			c.harm(e)
			found := fmt.Sprint(e.prove())
			if c.want == "" && found != "[]" || !strings.Contains(found, c.want) {
				t.Errorf("want %q, found %s", c.want, found)
			}
		})
	}
}
