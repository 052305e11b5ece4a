//go:build unix

package chaos

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// readChildren reads the logs of all agents that work for others, and enters
// their tasks as what was sent.
func (e *evidence) readChildren(ctx context.Context, c *client.Client) error {
	for _, tenant := range tenants {
		for row, err := range c.Agents(ctx, tenant, client.Only(messages.Query{Deleted: true})) {
			if err != nil {
				return fmt.Errorf("agents of %s: %w", tenant, err)
			}
			agent := row.Agent.Full()
			if row.Agent.Kind != "helper" && row.Agent.Kind != "middle" {
				continue
			}
			e.children = append(e.children, agent)
		}
	}
	if err := e.readLogs(ctx, c, e.children); err != nil {
		return err
	}
	for _, agent := range e.children {
		for _, ev := range e.logs[agent] {
			if f := field(ev); ev.Type == "input.accepted" && f.Parent != nil {
				said, p := readPlan(f.Content.Text())
				e.sent[f.Input] = &sent{ID: f.Input, Agent: agent, Publisher: f.Input, Command: "task", Said: said, Plan: p}
			}
		}
	}
	return nil
}

var sha256s = regexp.MustCompile(`"sha256":"([0-9a-f]{64})"`)

// fetch reads every payload that is kept beside a log. The client compares the
// hashes.
func (e *evidence) fetch(ctx context.Context, c *client.Client) error {
	type payload struct {
		agent string
		hash  messages.Digest
		ev    client.Event
	}
	var all []payload
	for agent := range e.logs {
		log, seen := e.own(agent), make(map[string]bool)
		if b := e.branches[agent]; b != nil && b.detached {
			log = e.logs[agent]
		}
		for _, ev := range log {
			for _, found := range sha256s.FindAllStringSubmatch(string(ev.Data), -1) {
				if !seen[found[1]] {
					seen[found[1]] = true
					all = append(all, payload{agent, messages.Digest(found[1]), ev})
				}
			}
		}
	}
	e.blobs = len(all)
	return atOnce(all, func(p payload) error {
		_, err := c.Blob(ctx, p.agent, p.hash, io.Discard)
		if err != nil {
			err = fmt.Errorf("%v: %w", violation{p.agent, "a payload that an event names is not whole", []client.Event{p.ev}}, err)
		}
		return err
	})
}

// task is a call that is another agent's task, as its own log records it.
type task struct {
	spawned  client.Event
	ends     []client.Event
	answer   messages.Digest // of its tool.completed
	answered bool
}

// tasks reads what a log records of its children, by the ids of their inputs.
func tasks(log []client.Event) map[string]*task {
	byInput, byCall := make(map[string]*task), make(map[string]*task)
	for _, ev := range log {
		f := field(ev)
		name := string(ev.Turn) + " " + string(f.Call)
		c := byCall[name]
		switch ev.Type {
		case "child.spawned":
			c = &task{spawned: ev}
			byInput[f.Input], byCall[name] = c, c
		case "child.completed", "child.failed", "child.stopped":
			if c != nil {
				c.ends = append(c.ends, ev)
			}
		case "tool.completed":
			if c != nil {
				c.answer, c.answered = f.output(), true
			}
		}
	}
	return byInput
}

// offspring holds that each call that is a child ended once, as the child's own
// log says it did, and that no child works for a call that is none.
func (t *trial) offspring() {
	for input, c := range tasks(t.own(t.agent)) {
		f := field(c.spawned)
		if len(c.ends) != 1 {
			t.wrong(append([]client.Event{c.spawned}, c.ends...), "the child of call %s ended %d times", f.Call, len(c.ends))
			continue
		}
		t.agree(input, c, f)
	}
	if !slices.Contains(t.children, t.agent) {
		return
	}
	for _, ev := range t.log {
		f := field(ev)
		if ev.Type != "input.accepted" || f.Parent == nil || t.removed(f.Parent.Agent) || isMortal(f.Parent.Agent) || isMortals(f.Content.Text()) {
			continue
		}
		if of := tasks(t.logs[f.Parent.Agent])[f.Input]; of == nil || field(of.spawned).Child != t.agent {
			t.wrong([]client.Event{ev}, "the log of %s has no child.spawned for this task", f.Parent.Agent)
		}
	}
}

// removed records the delete of an agent that works for others, or of a branch.
func (e *evidence) removed(agent string) bool {
	log := e.logs[agent]
	return (slices.Contains(e.children, agent) || e.branches[agent] != nil) && len(log) > 0 && log[0].Type == "agent.deleted"
}

// removedForGood holds that only the tombstone of such an agent is left: no task
// makes it again.
func (t *trial) removedForGood() {
	asked := false
	for _, s := range t.sent {
		asked = asked || s.Command == "delete" && s.Agent == t.agent
	}
	if !asked {
		t.wrong(t.log[:1], "it was deleted, and nobody asked for that")
	}
	for i, ev := range t.log {
		switch ev.Type {
		case "agent.deleted", "agent.activated", "command.noop":
		default:
			t.wrong([]client.Event{t.log[0], ev}, "%s of an agent that was deleted", ev.Type)
		}
		if want := t.log[0].N + messages.EventNumber(i); ev.N != want {
			t.wrong([]client.Event{ev}, "event number %d where %d is due", ev.N, want)
		}
	}
}

// agree holds the end of a call against the log of the child.
func (t *trial) agree(input string, c *task, f fields) {
	end := c.ends[0]
	if t.removed(f.Child) {
		return
	}
	told := field(end)
	below := t.logs[f.Child]
	if told.N == 0 {
		return // it was never accepted there
	}
	if int(told.N) > len(below) {
		t.wrong([]client.Event{c.spawned, end}, "child %s has %d events", f.Child, len(below))
		return
	}
	at := below[told.N-1]
	if !slices.Contains(endedBy(at), input) && at.Type != "input.recalled" {
		t.wrong([]client.Event{c.spawned, end, at}, "the child did not end with event %d", told.N)
	}
	if end.Type == "child.completed" && (at.Type != "turn.completed" || !c.answered || c.answer != field(at).output()) {
		t.wrong([]client.Event{c.spawned, end, at}, "the answer of child %s is not that of the call", f.Child)
	}
}

// isMortal reports whether an agent is one of those that are deleted, isMortals whether a
// text comes from one.
func isMortal(agent string) bool {
	return strings.HasSuffix(agent, "/m0") || strings.HasSuffix(agent, "/m1")
}

func isMortals(text string) bool { return strings.HasPrefix(text, "do m") }
