//go:build unix

package chaos

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// branch is an agent that begins with the events of another one: a fork, or one that was imported from
// an export.
type branch struct {
	agent, source string
	at            messages.EventNumber // the newest event that both have
	imported      bool
	inside        bool // of a turn
	// begun reports that it exists, gone that it was deleted.
	begun, gone bool
	// detached reports that it copied the events of its source, which was deleted then. before is the log that
	// it had before that, or before its source's source was deleted so.
	detached bool
	before   []client.Event
	ctx      context.Context // of those who read it
	cancel   context.CancelFunc
}

// own are the events of an agent's log that are its own: those behind what it begins with.
func (e *evidence) own(agent string) []client.Event {
	log := e.logs[agent]
	if b := e.branches[agent]; b != nil && len(log) > 0 && log[0].N == 1 { // else it was deleted
		return log[min(len(log), int(b.at)):]
	}
	return log
}

// owned are the own events of all agents.
func (e *evidence) owned() map[string][]client.Event {
	logs := make(map[string][]client.Event)
	for agent := range e.logs {
		logs[agent] = e.own(agent)
	}
	return logs
}

// forkedAt is the agent that is forked for an event of another one: what a fork has of its source is forked there,
// while that exists.
func (b *book) forkedAt(agent string, n messages.EventNumber) string {
	for of := b.branches[agent]; of != nil && !of.imported && !of.detached && n <= of.at; of = b.branches[agent] {
		agent = of.source
	}
	return agent
}

// branchOf is the branch for whose calls an agent works, if it does for one's: its own, or those of an
// agent that called it.
func (e *evidence) branchOf(agent string) string {
	for e.branches[agent] == nil {
		i := slices.IndexFunc(e.logs[agent], func(ev client.Event) bool { return ev.Type == "input.accepted" && field(ev).Parent != nil })
		if i < 0 {
			return ""
		}
		agent = field(e.logs[agent][i]).Parent.Agent
	}
	return agent
}

// began holds that a branch begins with the events that its source has, and was begun once.
func (t *trial) began() {
	b := t.branches[t.agent]
	begin := map[bool]string{false: "agent.forked", true: "agent.imported"}[b.imported]
	own := t.own(t.agent)
	if b.gone {
		t.wrong(nil, "it was deleted, and is there")
	}
	if len(own) == 0 || own[0].Type != begin || own[0].N != b.at+1 {
		t.wrong(own[:min(len(own), 1)], "%s at event %d of %s, and its own log does not begin so", begin, b.at, b.source)
		return
	}
	for _, ev := range own[1:] {
		if ev.Type == begin {
			t.wrong([]client.Event{own[0], ev}, "it began twice")
		}
	}
	source := t.logs[b.source]
	if t.removed(b.source) {
		return
	}
	for i, ev := range t.log[:b.at] {
		if i >= len(source) || !b.same(ev, source[i]) {
			t.wrong([]client.Event{ev}, "event %d is not that of %s", ev.N, b.source)
		}
	}
}

// storedAs finds under what digests the payloads of an agent are stored. Those that a branch has a copy of, of which
// the frames of an import are none, are encrypted by its own key.
var storedAs = regexp.MustCompile(`,"stored":"[0-9a-f]*"|"frames":{[^}]*}`)

// changed is the first event of a branch that is not in its log as it was before; nil: there is none.
func (b *branch) changed(log []client.Event) *violation {
	for i, was := range b.before {
		if i >= len(log) || log[i].N != was.N || !log[i].At.Equal(was.At) || !b.same(log[i], was) {
			what := fmt.Sprintf("event %d is not what it was before %s, or what that began with, was deleted", was.N, b.source)
			return &violation{b.agent, what, append([]client.Event{was}, log[i:min(i+1, len(log))]...)}
		}
	}
	return nil
}

// keeps holds that an agent kept the events that it began with when their agent was deleted, and had a turn since.
func (t *trial) keeps() {
	b := t.branches[t.agent]
	if v := b.changed(t.log); v != nil {
		t.found = append(t.found, *v)
		return
	}
	if b.before != nil && !slices.ContainsFunc(t.log[len(b.before):], func(ev client.Event) bool { return ev.Type == "turn.started" || ev.Type == "agent.cleared" }) {
		t.wrong(nil, "it has had no turn since %s was deleted", b.source)
	}
}

// same reports whether an event of an agent is that of its source, if it is a branch, or what it was before.
func (b *branch) same(ev, was client.Event) bool {
	if b != nil && ev.N <= b.at && (b.imported || b.before != nil) {
		ev.Data, was.Data = storedAs.ReplaceAll(ev.Data, nil), storedAs.ReplaceAll(was.Data, nil)
	}
	return sameEvent(ev, was)
}

// forks holds that each fork that was asked for was begun once or refused, as its parent has on record.
func (t *trial) forks() {
	type record struct{ requested, begun, refused int }
	of := make(map[string]*record)
	for _, ev := range t.own(t.agent) {
		f := field(ev)
		if of[f.Fork] == nil {
			of[f.Fork] = new(record)
		}
		switch r := of[f.Fork]; {
		case ev.Type == "fork.requested":
			r.requested++
		case ev.Type == "fork.settled" && f.N > 0:
			r.begun++
		case ev.Type == "fork.settled":
			r.refused++
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(t.branches)) {
		b := t.branches[agent]
		if b.source != t.agent || b.imported {
			continue
		}
		want := record{requested: 1, refused: 1}
		if b.begun {
			want = record{requested: 1, begun: 1}
		}
		if is := of[agent]; is == nil || *is != want {
			t.wrong(t.about(agent), "the record of fork %s is %+v, want %+v", agent, is, want)
		}
		if !b.begun && len(t.logs[agent]) > 0 {
			t.wrong(t.logs[agent], "fork %s was refused, and has events", agent)
		}
	}
}

// detached counts the forks that copied the events of their sources, which were deleted.
func (e *evidence) detached() (n int) {
	for _, b := range e.branches {
		if b.detached {
			n++
		}
	}
	return n
}

// branchesString counts branches, and what their calls had without a run of the tool.
func (e *evidence) branchesString() string {
	begun, imported, gone, dry, known := 0, 0, 0, 0, 0
	for agent, b := range e.branches {
		switch {
		case b.begun && b.imported:
			imported++
		case b.begun:
			begun++
		}
		if b.gone {
			gone++
		}
		newest := make(map[messages.CallID]bool)
		for _, ev := range e.own(agent) {
			switch f := field(ev); {
			case ev.Type == "tool.started":
				newest[f.Call] = f.Dry
				if f.Dry {
					dry++
				}
			case ev.Type == "tool.completed" && newest[f.Call]:
				known++
			}
		}
	}
	return fmt.Sprintf("%d forks and %d imports (%d of them deleted, %d detached) with %d dry calls, %d of them with a result on record", begun, imported, gone, e.detached(), dry, known)
}
