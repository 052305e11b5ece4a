package cluster_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// prompts sends a prompt as a client of the agent protocol does that is not ours, and returns where its
// reply comes once it is acknowledged.
func (w *world) prompts(agent messages.AgentID, text string) *nats.Subscription {
	w.t.Helper()
	replies, err := w.nc.SubscribeSync(w.nc.NewInbox())
	w.ok(err)
	w.ok(w.nc.PublishRequest(messages.Prompt(agent), replies.Subject, []byte(text)))
	for {
		msg, err := replies.NextMsgWithContext(w.ctx)
		w.ok(err)
		if strings.Contains(string(msg.Data), `"ack"`) {
			return replies
		}
	}
}

// streamEnds waits for the end of a reply, and returns its text and its error.
func (w *world) streamEnds(replies *nats.Subscription) (text, why string) {
	w.t.Helper()
	for {
		msg, err := replies.NextMsgWithContext(w.ctx)
		w.ok(err)
		if reason := msg.Header.Get("Nats-Service-Error"); reason != "" {
			why = reason
		} else if len(msg.Data) == 0 {
			return text, why
		}
		if strings.Contains(string(msg.Data), `"response"`) {
			text += string(msg.Data)
		}
	}
}

// The node behind the prompt of a plain client dies, and with it the stream: the owner of the agent ends it with
// an error that says how to continue, whether the dead node owned the agent itself or another one does by then, and
// also where the turn waits for a person.
func TestEndpointLost(t *testing.T) { // A100
	embeddedtest.Long(t, "several nodes")
	t.Run("the owner dies, too", func(t *testing.T) {
		w := newWorld(t)
		wi := &wire{}
		model := scripted.Func(func(messagesRequest) scripted.Step { return scripted.Held(scripted.NewGate(), scripted.Say("never")) })
		w.node(agents(model, nil), over(wi))
		replies := w.prompts(messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}, "hello")
		wi.cut()
		c := w.node(agents(echo(), nil)).Client()
		if text, why := w.streamEnds(replies); text != "" || !strings.Contains(why, `ask again with id "prompt:`) {
			t.Errorf("answered %q, %s", text, why)
		}
		w.until(c, "assistant/a", ofType("turn.completed"))
	})
	t.Run("the agent has moved", func(t *testing.T) {
		w := newWorld(t)
		wi, gate := &wire{}, scripted.NewGate()
		model := func() func(*cluster.Config) {
			return agents(scripted.Func(func(messagesRequest) scripted.Step { return scripted.Held(gate, scripted.Say("at last")) }), nil)
		}
		first := w.node(model(), over(wi))
		var all []*nats.Subscription
		for i := range 8 {
			all = append(all, w.prompts(messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}, "hello"))
		}
		second := w.node(model())
		w.even(first, second)
		wi.cut()
		w.owns(second)
		for i, replies := range all {
			if text, why := w.streamEnds(replies); text != "" || !strings.Contains(why, "ask again with id") {
				t.Errorf("%d: answered %q, %s", i, text, why)
			}
		}
		gate.Release()
	})
	t.Run("the turn waits", func(t *testing.T) {
		w := newWorld(t)
		wi := &wire{}
		var ran atomic.Int32
		w.node(refunds(&ran), over(wi))
		replies := w.prompts(messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}, "pay it")
		w.until(client.New(w.nc, ""), "assistant/a", ofType("approval.requested"))
		wi.cut()
		w.node(refunds(&ran))
		if _, why := w.streamEnds(replies); !strings.Contains(why, "ask again with id") {
			t.Error(why)
		}
	})
}

// A stream whose endpoint is there is ended by that alone, also when the agent moves.
func TestEndpointStays(t *testing.T) { // A26
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	gate := scripted.NewGate()
	model := func() func(*cluster.Config) {
		return agents(scripted.Func(func(messagesRequest) scripted.Step { return scripted.Held(gate, scripted.Say("at last")) }), nil)
	}
	first := w.node(model())
	var all []*nats.Subscription
	for i := range 8 {
		all = append(all, w.prompts(messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}, "hello"))
	}
	w.even(first, w.node(model()))
	gate.Release()
	for i, replies := range all {
		if text, why := w.streamEnds(replies); !strings.Contains(text, "at last") || why != "" {
			t.Errorf("%d: answered %q, %s", i, text, why)
		}
	}
}
