package cluster_test

import (
	"fmt"
	"testing"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// spendthrifts are agents whose leaf never has enough; every model call uses 11 tokens.
type spendthrifts struct{ family }

func (f *spendthrifts) answer(r providers.Request) scripted.Step {
	last := r.Items[len(r.Items)-1]
	if r.Agent.Kind != "leaf" || last.Type != messages.ItemCallOutput {
		return f.family.answer(r)
	}
	step := scripted.Ask(scripted.Call{ID: messages.CallID(fmt.Sprint("c", len(r.Items))), Name: "pay", Arguments: "{}"})
	step.Usage = messages.Usage{Input: 10, Output: 1}
	return step
}

// tree is an agent and all that are below it.
func (w *world) tree(c *client.Client, agent string) []string {
	w.t.Helper()
	all := []string{agent}
	for _, child := range viewOf[projections.Child](w, c, agent, "children") {
		all = append(all, w.tree(c, child.Agent.String())...)
	}
	return all
}

// A budget that the root was given holds for the tree below it, though its agents live on
// several nodes and one of those is lost on the way.
func TestBudgetOfATreeOnManyNodes(t *testing.T) { // A71 A17
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	const most = 40 * 11
	f, wi := &spendthrifts{family{free: true}}, &wire{}
	agents := func(c *cluster.Config) {
		f.agents()(c)
		c.Providers = providers.Set{"test": scripted.Func(f.answer)}
		for i := range c.Agents {
			c.Agents[i].MaxSteps = 1000
			if c.Agents[i].Kind == "root" {
				c.Agents[i].TurnLimits = messages.Limits{MaxTokens: most}
			}
		}
	}
	first := w.node(agents, over(wi))
	second := w.node(agents)
	w.even(first, second)
	var before [messages.Partitions]string
	for p := range messages.Partitions {
		before[p] = w.owner(messages.Partition(p))
	}
	apart, c := 0, second.Client()
	const roots = 10 // a tree of three is on one node once in four
	for i := range roots {
		w.ok(w.nc.Publish(fmt.Sprintf("reprise.in.default.root.r%d", i), []byte("spend it")))
	}
	w.until(c, "root/r0", ofType("child.spawned"))
	wi.cut()
	for i := range roots {
		root := fmt.Sprintf("root/r%d", i)
		ended := func(e event) bool { return e.Type == "turn.failed" || e.Type == "turn.completed" }
		w.until(c, root, ended)
		used, owners := 0, make(map[string]bool)
		for _, agent := range w.tree(c, root) {
			w.until(c, agent, ended)
			used += 11 * count(w.events(c, agent), "model.completed")
			a, err := messages.ParseAgentID(agent)
			w.ok(err)
			owners[before[a.Partition()]] = true
		}
		if used > most || used < most/2 {
			t.Errorf("the tree of %s used %d tokens of %d", root, used, most)
		}
		if len(owners) > 1 {
			apart++
		}
	}
	if apart == 0 {
		t.Error("no tree lived on two nodes")
	}
}
