package cluster_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

func TestThousandInputs(t *testing.T) { // A7 A1
	w := newWorld(t)
	var mu sync.Mutex
	var order []string
	model := scripted.Func(func(r messagesRequest) scripted.Step {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, lastUser(r))
		return scripted.Say("ok")
	})
	c := w.node(agents(model, nil)).Client()
	publishers, each := 20, 50
	var wg sync.WaitGroup
	for p := range publishers {
		js, err := jetstream.New(w.connect())
		w.ok(err)
		wg.Go(func() {
			for i := range each {
				if _, err := js.Publish(w.ctx, "reprise.in.default.assistant.a", fmt.Appendf(nil, "%d %d", p, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := 0
	w.until(c, "assistant/a", func(e event) bool {
		if e.Type == "turn.completed" {
			done++
		}
		return done == publishers*each
	})
	wg.Wait()
	next := map[int]int{}
	for _, text := range order {
		var p, i int
		if _, err := fmt.Sscan(text, &p, &i); err != nil || i != next[p] {
			t.Fatalf("input %q came when %d was next (%v)", text, next[p], err)
		}
		next[p]++
	}
	open := ""
	for _, e := range w.events(c, "assistant/a") {
		switch {
		case e.Type == "turn.started" && open != "", e.Type == "turn.completed" && open != string(e.Turn):
			t.Fatalf("%s of %s while %q is open", e.Type, e.Turn, open)
		case e.Type == "turn.started":
			open = string(e.Turn)
		case e.Type == "turn.completed":
			open = ""
		}
	}
	if len(order) != publishers*each {
		t.Errorf("%d model calls", len(order))
	}
}

func TestTwoAgentsAtOnce(t *testing.T) { // A5
	w := newWorld(t)
	gate := scripted.NewGate()
	both := make(chan string, 2)
	model := scripted.Func(func(r messagesRequest) scripted.Step {
		both <- r.Agent.Key
		return scripted.Held(gate, scripted.Say("ok"))
	})
	c := w.node(agents(model, nil)).Client()
	for _, key := range []string{"a", "b"} {
		_, err := c.Send(w.ctx, "assistant/"+key, input("1", "go"))
		w.ok(err)
	}
	if one, other := <-both, <-both; one == other {
		t.Error("one agent called twice")
	}
	gate.Release()
	w.until(c, "assistant/a", ofType("turn.completed"))
	w.until(c, "assistant/b", ofType("turn.completed"))
}

func TestSecondTurnSeesTheFirst(t *testing.T) { // A1
	w := newWorld(t)
	model := echo()
	c := w.node(agents(model, nil)).Client()
	for i, text := range []string{"one", "two"} {
		_, err := c.Send(w.ctx, "assistant/a", input(fmt.Sprint(i), text))
		w.ok(err)
	}
	w.until(c, "assistant/a", func(e event) bool { return e.field("output") == "you said two" })
	var texts []string
	for _, item := range model.Requests()[1].Items {
		texts = append(texts, item.Content.Text())
	}
	if got := strings.Join(texts, "|"); got != "one|you said one|two" {
		t.Errorf("the second call saw %s", got)
	}
}

// A limit of cost that could never be reached is refused.
func TestLimitWithoutPrice(t *testing.T) {
	limit := messages.Limits{MaxCost: messages.CostOf(0.01)}
	for name, c := range map[string]struct {
		d        actors.Definition
		unpriced string
	}{
		"turn":     {actors.Definition{Model: "test/other", TurnLimits: limit}, "test/other"},
		"agent":    {actors.Definition{Model: "test/other", AgentLimits: limit}, "test/other"},
		"fallback": {actors.Definition{Model: "test/model", Fallbacks: []string{"test/other"}, TurnLimits: limit}, "test/other"},
		"summary":  {actors.Definition{Model: "test/model", Compact: actors.Compaction{Model: "test/small"}, TurnLimits: limit}, "test/small"},
	} {
		t.Run(name, func(t *testing.T) {
			c.d.Kind = "assistant"
			n, err := cluster.Start(t.Context(), cluster.Config{
				Data: t.TempDir(), Providers: providers.Set{"test": scripted.New()}, Agents: []actors.Definition{c.d},
				Prices: map[string]messages.Price{"test/model": {Input: 1}},
			})
			if err == nil {
				n.Close()
			}
			if want := "agent assistant: max_cost cannot be enforced: the model " + c.unpriced + " has no price"; fmt.Sprint(err) != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		})
	}
}

// A node's prices are what its agents' limits of cost are counted by.
func TestPricesLimitTurns(t *testing.T) {
	w := newWorld(t)
	model := scripted.New(scripted.Say("cheap"))
	limited := func(d *actors.Definition) { d.TurnLimits.MaxCost = messages.CostOf(0.01) }
	priced := func(c *cluster.Config) { c.Prices = map[string]messages.Price{"test/model": {Input: 1_000_000}} }
	c := w.node(agents(model, limited), priced).Client()
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("what does this cost?")))
	ended := w.until(c, "assistant/a", func(e event) bool { return e.Type == "turn.completed" || e.Type == "turn.failed" })
	if ended.Type != "turn.failed" || ended.field("reason") != "max_cost" || model.Calls() != 0 {
		t.Errorf("%s after %d calls: %s", ended.Type, model.Calls(), ended.Data)
	}
}
