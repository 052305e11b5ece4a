package cluster_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// persons are who an agent's events of a type name, in order; without a name for none.
func (w *world) persons(c *client.Client, agent, eventType string) (named []messages.Person) {
	w.t.Helper()
	for _, e := range viewOf[projections.EventJSON](w, c, agent, "events") {
		switch {
		case e.Type != eventType:
		case e.Person == nil:
			named = append(named, messages.Person{})
		default:
			named = append(named, *e.Person)
		}
	}
	return named
}

func (w *world) named(got []messages.Person, want ...messages.Person) {
	w.t.Helper()
	if len(got) != len(want) {
		w.t.Errorf("got %+v, want %+v", got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			w.t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// claimed is a person by their own word.
func claimed(name, endpoint string) messages.Person {
	return messages.Person{Name: name, Claimed: true, Endpoint: endpoint}
}

// TestPersonIsRecorded holds that the log says who sent an input, who decided about each
// call and who deleted the agent, at which endpoint, and the views do.
func TestPersonIsRecorded(t *testing.T) {
	w := newWorld(t)
	var ran atomic.Int32
	c := w.node(refunds(&ran)).Client()
	for _, name := range []string{"none", "carol"} {
		msg := &nats.Msg{Subject: "reprise.in.default.assistant." + name, Data: []byte("be quick"), Header: nats.Header{}}
		if name != "none" {
			msg.Header.Set(messages.HeaderPerson, name)
		}
		w.ok(w.nc.PublishMsg(msg))
		w.until(c, "assistant/"+name, ofType("turn.completed"))
	}
	w.named(w.persons(c, "assistant/none", "input.accepted"), messages.Person{})
	w.named(w.persons(c, "assistant/carol", "input.accepted"), claimed("carol", "in"))

	const till = "assistant/till"
	done := make(chan error, 1)
	go func() {
		_, err := w.ask(c.As("alice"), till, input("u1", "pay them back"))
		done <- err
	}()
	w.until(c, till, ofType("turn.paused"))
	_, err := c.As("bob").Do(w.ctx, till, messages.Approve{Call: "a", Remember: true})
	w.ok(err)
	_, err = c.As("dora").Do(w.ctx, till, messages.Deny{Call: "c"})
	w.ok(err)
	w.ok(<-done)
	w.named(w.persons(c, till, "input.accepted"), claimed("alice", "prompt"))
	w.named(w.persons(c, till, "approval.granted"), claimed("bob", "ctl"))
	w.named(w.persons(c, till, "approval.denied"), claimed("dora", "ctl"))
	w.named(w.persons(c, till, "turn.completed"), messages.Person{})

	decided := func(list []projections.Effect) map[messages.CallID]messages.Person {
		by := make(map[messages.CallID]messages.Person)
		for _, e := range list {
			if e.Person != nil {
				by[e.Call] = *e.Person
			}
		}
		return by
	}
	want := func(by map[messages.CallID]messages.Person) bool {
		return len(by) == 2 && by["a"] == claimed("bob", "ctl") && by["c"] == claimed("dora", "ctl")
	}
	if got := decided(viewOf[projections.Effect](w, c, till, "effects")); !want(got) {
		t.Errorf("the agent's effects name %+v", got)
	}
	w.eventually("the views of all agents name them", func() bool {
		var all []projections.Effect
		for line, err := range c.QueryTenant(w.ctx, messages.DefaultTenant, messages.Query{View: "effects"}) {
			w.ok(err)
			var e projections.Effect
			w.ok(json.Unmarshal(line, &e))
			all = append(all, e)
		}
		return want(decided(all))
	})
	for r, err := range c.Remembered(w.ctx, till) {
		if err != nil || r.Person == nil || *r.Person != claimed("bob", "ctl") {
			t.Errorf("remembered %+v, %v", r, err)
		}
	}

	const busy = "assistant/busy" // its end takes more than one frame
	_, err = c.Send(w.ctx, busy, input("u1", "pay them back"))
	w.ok(err)
	w.until(c, busy, ofType("turn.paused"))
	for _, agent := range []string{till, busy} {
		_, err = c.As("erik").Do(w.ctx, agent, messages.Delete{})
		w.ok(err)
		w.until(c, agent, ofType("agent.deleted"))
		w.named(w.persons(c, agent, "agent.deleted"), claimed("erik", "ctl"))
	}
}

// TestPersonBelow holds that a decision that is passed down names who decided at the top,
// and an answer to a question who gave it.
func TestPersonBelow(t *testing.T) {
	w := newWorld(t)
	asked := func(c *cluster.Config) { c.PromptDecides = func(string, string) bool { return true } }
	f := new(family)
	c := w.node(f.agents(), asked).Client()
	leaf := ""
	for ev, err := range c.As("ann").AskInput(w.ctx, "root/r", input("u1", "pay it")) {
		w.ok(err)
		if ev.Question != nil {
			leaf = viewOf[messages.Approval](w, c, "root/r", "approvals")[0].Agent.String()
			w.ok(c.As("ben").Answer(w.ctx, *ev.Question, "yes"))
		}
	}
	w.named(w.persons(c, "root/r", "child.decided"), claimed("ben", "prompt"))
	w.named(w.persons(c, leaf, "approval.granted"), claimed("ben", "peer"))
}
