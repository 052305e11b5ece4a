package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

// through connects a client over a wire.
func (w *world) through(wi *wire) *client.Client {
	w.t.Helper()
	nc, err := nats.Connect(w.url, unhurried, nats.SetCustomDialer(wi), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	w.ok(err)
	w.t.Cleanup(nc.Close)
	return client.New(nc, "")
}

// The answer to a command comes while its sender's connection is broken, and is lost:
// the command is given again under its id, and has one effect.
func TestAnswerToCommandIsLost(t *testing.T) { // A8
	w := newWorld(t)
	w.ok(w.node().Close()) // its streams stay
	wi := new(wire)
	c := w.through(wi)
	stored := make(chan *nats.Msg, 10)
	_, err := w.nc.ChanSubscribe("reprise.ctl.default.assistant.a", stored)
	w.ok(err)
	w.ok(w.nc.Flush())
	type got struct {
		answer messages.Answer
		err    error
	}
	answered := make(chan got, 1)
	go func() {
		answer, err := c.Do(w.ctx, "assistant/a", messages.SetState{Patch: []byte(`{"is":"set"}`)})
		answered <- got{answer, err}
	}()
	<-stored
	wi.cut()
	n := w.node()
	first := w.until(n.Client(), "assistant/a", ofType("state.patched"))
	wi.heal()
	if g := <-answered; g.err != nil || g.answer.N == 0 || g.answer.N > first.N || g.answer.Duplicate {
		t.Errorf("%+v, %v; the event is %d", g.answer, g.err, first.N)
	}
	if events := w.events(n.Client(), "assistant/a"); count(events, "state.patched") != 1 {
		t.Errorf("%+v", events)
	}
	select {
	case <-stored:
	case <-w.ctx.Done():
		t.Error("it was not given again")
	}
}

// An input is on its way when its sender's connection breaks, and is lost: it is
// published again, and Send returns when it is stored.
func TestInputIsLostOnItsWay(t *testing.T) { // A8
	w := newWorld(t)
	n := w.node()
	wi := new(wire)
	c := w.through(wi)
	_, err := c.Send(w.ctx, "assistant/a", input("before", "hello"))
	w.ok(err)
	wi.freeze()
	sent := make(chan error, 1)
	go func() {
		_, err := c.Send(w.ctx, "assistant/a", input("lost", "hello"))
		sent <- err
	}()
	w.eventually("it is on its way", func() bool { return wi.writing.Load() > 0 })
	wi.cut()
	wi.thaw()
	wi.heal()
	w.ok(<-sent)
	turns := 0
	w.until(n.Client(), "assistant/a", func(e event) bool {
		if e.Type == "turn.completed" {
			turns++
		}
		return turns == 2
	})
}

// An agent's owner does not define its kind, and the node whose endpoint is asked does, or knows
// who does: the caller learns which node it is, and may ask again later.
func TestOwnerLacksKind(t *testing.T) { // A91, A102
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	first := w.node()
	second := w.node(func(c *cluster.Config) {
		c.Agents = append(c.Agents, actors.Definition{Kind: "new", Model: "test/model", Instructions: "Be brief."})
	})
	w.even(first, second)
	key := 0
	for ; w.owner(messages.AgentID{Tenant: "default", Kind: "new", Key: fmt.Sprint(key)}.Partition()) != first.ID(); key++ {
	}
	agent := fmt.Sprintf("new/%d", key)
	for range 6 { // either endpoint
		got := w.request("agents.prompt.new.default."+fmt.Sprint(key), "hello")
		if got.code != "500" || !strings.Contains(got.reason, "node "+first.ID()+", which defines no kind \"new\"") || !strings.Contains(got.reason, agent) {
			t.Fatalf("%+v", got)
		}
	}
}
