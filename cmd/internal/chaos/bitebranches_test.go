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

// forkedFrom is the evidence of [honest], with a fork of its agent that was made when a call ran in it. The
// fork is dry, retries the call, has the result on record, and answers an input of its own.
func forkedFrom(t *testing.T, fork string) *evidence {
	e := honest(t)
	const agent = "default/worker/a"
	write := func(to string, ev messages.Event) {
		data, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		of := struct{ Turn messages.TurnID }{}
		_ = json.Unmarshal(data, &of) // it may have none
		n := messages.EventNumber(len(e.logs[to]) + 1)
		e.logs[to] = append(e.logs[to], client.Event{N: n, Type: ev.EventType(), Turn: of.Turn, Data: data})
	}
	e.branches = map[string]*branch{fork: {agent: fork, source: agent, at: 4, begun: true}}
	e.sent["f-1"] = &sent{ID: "f-1", Agent: fork, Publisher: "f", Number: 1, Command: "input", Life: 1, Said: "p-1"}
	e.logs[fork] = slices.Clone(e.logs[agent][:4])
	for _, ev := range []messages.Event{
		messages.AgentForked{Agent: fork, Parent: agent, At: 4, Turn: "t2"},
		messages.ToolUnknown{Turn: "t2", Call: "x"},
		messages.TurnResumed{Turn: "t2"},
		messages.ToolStarted{Turn: "t2", Call: "x", Key: "own", OnUnknown: messages.Rerun, Attempt: 2, Dry: true},
		messages.ToolCompleted{Turn: "t2", Call: "x"},
		messages.TurnCompleted{Turn: "t2", Inputs: []string{"p-1"}, Output: "done p-1: rerun:p-1:0"},
		messages.InputAccepted{Input: "f-1"},
		messages.TurnStarted{Turn: "t12"},
		messages.TurnCompleted{Turn: "t12", Inputs: []string{"f-1"}, Output: "done p-1:"},
	} {
		write(fork, ev)
	}
	write(agent, messages.ForkRequested{Fork: fork, At: 4})
	write(agent, messages.ForkSettled{Fork: fork, N: 5})
	return e
}

// detachedFrom is the evidence of [forkedFrom] if the parent was deleted before the fork took its own input.
func detachedFrom(e *evidence, fork string) *branch {
	const agent = "default/worker/a"
	e.logs[agent] = []client.Event{{N: 16, Type: "agent.deleted", Data: json.RawMessage(`{}`)}}
	e.branches[agent] = &branch{agent: agent, gone: true}
	e.sent["d-1"] = &sent{ID: "d-1", Agent: agent, Command: "delete"}
	of := e.branches[fork]
	of.detached, of.before = true, slices.Clone(e.logs[fork][:10])
	return of
}

// TestProofBitesBranches holds that the proof finds what must not be of forks and imported agents.
func TestProofBitesBranches(t *testing.T) { // A81
	const agent, fork = "default/worker/a", "default/worker/f"
	for name, c := range map[string]struct {
		harm func(*evidence)
		want string
	}{
		"nothing": {func(*evidence) {}, ""},
		"another past": {func(e *evidence) { e.logs[fork][1].Data = json.RawMessage(`{"turn":"t2","inputs":[]}`) },
			"event 2 is not that of default/worker/a"},
		"a fork of its own":  {func(e *evidence) { e.logs[fork][4].Type = "agent.activated" }, "and its own log does not begin so"},
		"begun twice":        {func(e *evidence) { e.logs[fork][5].Type = "agent.forked" }, "it began twice"},
		"a lost fork":        {func(e *evidence) { e.logs[fork] = nil }, "and its own log does not begin so"},
		"deleted, and there": {func(e *evidence) { e.branches[fork].gone = true }, "it was deleted, and is there"},
		"not on record":      {func(e *evidence) { e.logs[agent] = e.logs[agent][:14] }, "{requested:1 begun:0 refused:0}, want {requested:1 begun:1 refused:0}"},
		"on record twice":    {func(e *evidence) { e.logs[agent] = append(e.logs[agent], again(e.logs[agent][14], 16)) }, "begun:2"},
		"refused, and begun": {func(e *evidence) {
			e.branches[fork].begun = false
			e.logs[agent][14].Data = json.RawMessage(`{"fork":"default/worker/f"}`)
		}, "was refused, and has events"},
		"a dry call that ran": {func(e *evidence) {
			e.ledger = append(e.ledger, entry{What: "invoked", Tool: "rerun", Key: "own", Attempt: 2, Input: "p-1"})
		}, "attempt 2 of own ran, and no tool.started in a log says so"},
		"an event of the fork in its parent": {func(e *evidence) { e.logs[agent][12] = again(e.logs[fork][10], 13) },
			"input f-1 was accepted but never sent here"},
		"an event of the parent in its fork": {func(e *evidence) { e.logs[fork] = append(e.logs[fork], again(e.logs[agent][5], 14)) },
			"input p-2 was accepted but never sent here"},
		"a result that is not the parent's": {func(e *evidence) {
			e.logs[fork][9].Data = json.RawMessage(`{"turn":"t2","inputs":["p-1"],"output":"else"}`)
		},
			"turn t2 should have said"},
		"detached": {func(e *evidence) { detachedFrom(e, fork) }, ""},
		"detached, and under other names": {func(e *evidence) {
			detachedFrom(e, fork).before[1].Data = json.RawMessage(`{"turn":"t2","blob":{"sha256":"a","stored":"b"}}`)
			e.logs[fork][1].Data = json.RawMessage(`{"turn":"t2","blob":{"sha256":"a","stored":"c"}}`)
		}, ""},
		"detached, and another past": {func(e *evidence) { detachedFrom(e, fork).before[1].Data = json.RawMessage(`{"turn":"t2","inputs":[]}`) },
			"event 2 is not what it was"},
		"detached, and another own event": {func(e *evidence) { detachedFrom(e, fork).before[6].Type = "turn.paused" },
			"event 7 is not what it was"},
		"detached, and later": {func(e *evidence) { detachedFrom(e, fork).before[3].At = time.Unix(0, 0) },
			"event 4 is not what it was"},
		"detached, and shorter": {func(e *evidence) {
			detachedFrom(e, fork).before = append(slices.Clone(e.logs[fork]), again(e.logs[fork][12], 14))
		}, "event 14 is not what it was"},
		"detached, and at rest": {func(e *evidence) { detachedFrom(e, fork).before = e.logs[fork] },
			"it has had no turn since default/worker/a was deleted"},
		"an effect twice": {func(e *evidence) {
			e.logs[fork][7].Data = json.RawMessage(`{"turn":"t2","call":"x","on_unknown":"rerun","key":"default/worker/f/t2/x","attempt":2}`)
			for _, what := range []string{"invoked", "effect", "effect"} {
				e.ledger = append(e.ledger, entry{What: what, Tool: "rerun", Key: "default/worker/f/t2/x", Attempt: 2, Input: "p-1"})
			}
		}, "2 effects under key default/worker/f/t2/x"},
		"its own effect": {func(e *evidence) {
			e.logs[fork][7].Data = json.RawMessage(`{"turn":"t2","call":"x","on_unknown":"rerun","key":"default/worker/f/t2/x","attempt":2}`)
			for _, what := range []string{"invoked", "effect"} {
				e.ledger = append(e.ledger, entry{What: what, Tool: "rerun", Key: "default/worker/f/t2/x", Attempt: 2, Input: "p-1"})
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := forkedFrom(t, fork)
			c.harm(e)
			found := fmt.Sprint(e.prove())
			if c.want == "" && found != "[]" || !strings.Contains(found, c.want) {
				t.Errorf("want %q, found %s", c.want, found)
			}
		})
	}
}

// TestSaidToABranchOnce holds that a branch gets each input that its source has taken since at most once.
func TestSaidToABranchOnce(t *testing.T) {
	of := &branch{agent: "default/worker/f", source: "default/worker/a", at: 4}
	b := newBook()
	for id, n := range map[string]messages.EventNumber{"p-1": 2, "p-2": 5, "p-3": 8} {
		data, err := json.Marshal(messages.InputAccepted{Input: id})
		if err != nil {
			t.Fatal(err)
		}
		b.sent[id] = &sent{ID: id, Agent: of.source}
		b.see(of.source, client.Event{N: n, Type: "input.accepted", Data: data})
	}
	var said []string
	for s := b.later(of); s != nil; s = b.later(of) {
		said = append(said, s.ID)
		id := fmt.Sprint("f-", len(said))
		b.sent[id] = &sent{ID: id, Agent: of.agent, Said: s.ID}
		if len(said) > 2 {
			break
		}
	}
	if slices.Sort(said); !slices.Equal(said, []string{"p-2", "p-3"}) {
		t.Errorf("got %v, want p-2 and p-3", said)
	}
}
