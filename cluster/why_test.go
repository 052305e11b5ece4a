package cluster_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// cashier is the kinds shop and helper: a shop refunds order 7, once or twice in one answer, or has two
// helpers do it. ran waits for hold, if there is one, each time it refunds.
type cashier struct {
	hold *scripted.Gate
	ran  atomic.Int32
}

func (k *cashier) answer(r providers.Request) scripted.Step {
	if r.Items[len(r.Items)-1].Type == messages.ItemCallOutput {
		return scripted.Say("done")
	}
	ask := func(id, name, arguments string) scripted.Call {
		return scripted.Call{ID: messages.CallID(id), Name: name, Arguments: arguments}
	}
	const order = `{"order":"7","cents":9900}`
	switch text := lastUser(r); {
	case strings.HasPrefix(text, "twice"):
		return scripted.Ask(ask("c1", "refund", order), ask("c2", "refund", `{"cents":9900.0,"order":"7"}`))
	case strings.HasPrefix(text, "delegate"):
		return scripted.Ask(ask("c1", "helper", `{"input":"refund it"}`), ask("c2", "helper", `{"input":"refund it, please"}`))
	}
	return scripted.Ask(ask("c1", "refund", order))
}

func (k *cashier) agents() change {
	pay := tool.New("refund", "Pay an order back", tool.Pause, func(ctx context.Context, _ refund) (string, error) {
		if k.ran.Add(1) == 1 && k.hold != nil {
			_ = k.hold.Wait(ctx)
		}
		return "paid", nil
	})
	return func(c *cluster.Config) {
		c.Providers = providers.Set{"test": scripted.Func(k.answer)}
		c.Agents = []actors.Definition{
			{Kind: "shop", Model: "test/m", Parallel: 1, Tools: []tool.Tool{pay, actors.AsTool("helper", "does it")}}, // one after the other
			{Kind: "helper", Model: "test/m", Tools: []tool.Tool{pay}},
		}
	}
}

// later is how long after an input the same one came.
var later = regexp.MustCompile(`came [0-9.µm]*s later`)

// whyText is why an event happened: a line for each cause and finding.
func (w *world) whyText(n *cluster.Node, agent string, at messages.EventNumber) string {
	w.t.Helper()
	why, err := n.Client().Why(w.ctx, agent, at)
	w.ok(err)
	var b strings.Builder
	fmt.Fprintf(&b, "== %s event %d\n", agent, at)
	for _, c := range why.Chain {
		fmt.Fprintf(&b, "%-9s %s %d %s", c.Relation, c.Agent, c.N, c.Text)
		if c.Command != "" {
			fmt.Fprintf(&b, " [%s %s through %s by %+v]", c.Command, c.ID, c.Endpoint, c.Person)
		}
		b.WriteString("\n")
	}
	for _, f := range why.Findings {
		fmt.Fprintf(&b, "%s %v: %s\n", f.Kind, f.Events, f.Text)
	}
	return later.ReplaceAllString(strings.ReplaceAll(b.String(), n.ID(), "NODE"), "came LATER later") + "\n"
}

// calls are the events at which the calls of a tool of an agent, or of all agents, were requested.
func (w *world) calls(c *client.Client, of, tool string) (list []projections.Effect) {
	w.t.Helper()
	for e, err := range c.Effects(w.ctx, of, client.Only(messages.Query{Tool: tool})) {
		w.ok(err)
		list = append(list, e)
	}
	return list
}

// The node is lost while a refund runs, a person has it run again, and later the same is asked again.
func TestWhyAfterAnUnknownOutcome(t *testing.T) { // A22, A33
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	k, wi := &cashier{hold: scripted.NewGate()}, new(wire)
	first := w.node(k.agents(), over(wi))
	_, err := first.Client().As("bob").Send(w.ctx, "shop/main", input("u1", "refund order 7"))
	w.ok(err)
	<-k.hold.Reached()
	wi.cut()
	n := w.node(k.agents())
	c := n.Client()
	w.until(c, "shop/main", ofType("turn.paused"))
	_, err = c.As("ann").Do(w.ctx, "shop/main", messages.Decide{ID: "d1", Call: "c1", Outcome: messages.OutcomeRetry, Reason: "it is not on the account"})
	w.ok(err)
	w.until(c, "shop/main", ofType("turn.completed"))
	w.say(c.As("eve"), "shop/main", "u2", "refund it, please")
	calls := w.calls(c, "shop/main", "refund")
	if len(calls) != 2 {
		t.Fatalf("calls %+v", calls)
	}
	w.golden("why/unknown", host.ReplaceAllString(w.whyText(n, "shop/main", calls[0].N)+w.whyText(n, "shop/main", calls[1].N)+w.whyText(n, "shop/main", calls[0].Ended), "on HOST took"))
}

var host = regexp.MustCompile(`on \S+ took`)

// A user sends an input again under another id, and another one asks for something else.
func TestWhyAfterAResend(t *testing.T) { // A8
	w := newWorld(t)
	n := w.node(new(cashier).agents())
	w.say(n.Client().As("bob"), "shop/main", "u1", "refund order 7")
	w.say(n.Client().As("bob"), "shop/main", "u2", "refund order 7")
	calls := w.calls(n.Client(), "shop/main", "refund")
	w.golden("why/resent", w.whyText(n, "shop/main", calls[1].N)+w.whyText(n, "shop/main", calls[0].N))
}

// A model asks for the same call twice in one answer.
func TestWhyAModelAskedTwice(t *testing.T) { // A33
	w := newWorld(t)
	n := w.node(new(cashier).agents())
	w.say(n.Client().As("bob"), "shop/main", "u1", "twice, I think")
	calls := w.calls(n.Client(), "shop/main", "refund")
	w.golden("why/twice", w.whyText(n, "shop/main", calls[1].N))
}

// Two children of one parent make the same call. The chain leads through the parent to the person who
// asked it. Once the parent is deleted the chain ends with the child, and holds nothing of the parent.
func TestWhyTwoChildrenDidIt(t *testing.T) { // A70, A108
	w := newWorld(t)
	n := w.node(new(cashier).agents(), under(key(1)))
	w.say(n.Client().As("bob"), "shop/main", "u1", "delegate "+secret)
	child := viewOf[projections.Child](w, n.Client(), "shop/main", "children")[1].Agent.String()
	call := w.calls(n.Client(), child, "refund")[0]
	text := w.whyText(n, child, call.N)
	w.golden("why/siblings", text)
	if !strings.Contains(text, secret) {
		t.Errorf("the chain does not lead to what the parent was asked:\n%s", text)
	}
	_, err := n.Client().Do(w.ctx, "shop/main", messages.Delete{})
	w.ok(err)
	text = w.whyText(n, child, call.N)
	if !strings.Contains(text, "missing   shop/main 0") || strings.Contains(text, secret) {
		t.Errorf("after the parent was deleted:\n%s", text)
	}
}

// Events that do not exist, and agents that do not, are refused. A chain into a log that is damaged ends with
// the reason, and one of an agent whose log is damaged later has the reason behind it.
func TestWhyNot(t *testing.T) { // A105
	w := newWorld(t)
	n := w.node(new(cashier).agents())
	c := n.Client()
	w.say(c, "shop/main", "u1", "delegate")
	child := viewOf[projections.Child](w, c, "shop/main", "children")[0].Agent.String()
	for agent, at := range map[string]messages.EventNumber{"shop/main": 10_000, "shop/none": 1} {
		if _, err := c.Why(w.ctx, agent, at); codeOf(err) != messages.NotFound {
			t.Errorf("event %d of %s: %v", at, agent, err)
		}
	}
	for _, q := range []messages.Query{{View: "why"}, {View: "why", At: 1, Tail: 1}} {
		if got := w.lines(n, messages.AgentID{Tenant: "default", Kind: "shop", Key: "main"}, q); len(got) != 1 || !strings.HasPrefix(got[0], "refused bad_input") {
			t.Errorf("%+v: %v", q, got)
		}
	}
	call := w.calls(c, child, "refund")[0]
	w.lose("shop/main", 1)
	why, err := c.Why(w.ctx, child, call.N)
	if last := why.Chain[len(why.Chain)-1]; err != nil || last.Relation != projections.CauseMissing || last.Agent.String() != "shop/main" {
		t.Errorf("with a damaged parent: %+v, %v", last, err)
	}
	w.lose(child, 2)
	why, err = c.Why(w.ctx, child, call.N)
	if codeOf(err) != messages.Damaged || len(why.Chain) == 0 || why.N != call.N {
		t.Errorf("with damage behind the event: %+v, %v", why, err)
	}
}

// A log that was not written by a node may name any parent: the chain leads into no other tenant, and ends where
// it would come back to a call.
func TestWhyStaysInItsTenant(t *testing.T) {
	w := newWorld(t)
	log := w.openLog()
	frame := func(parent messages.Caller) []*messages.Frame {
		return []*messages.Frame{{ID: "f1", First: 1, Time: storyTime, Cause: messages.Cause{Type: "task"}, Events: []messages.Event{
			messages.AgentCreated{Agent: "default/test/child"},
			messages.InputAccepted{Input: "u1", Content: messages.TextContent(secret), Parent: &messages.Parent{Caller: parent}},
			messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, MaxSteps: 1},
			messages.ToolRequested{Turn: "t3", Step: 1, Call: "c1", Tool: "ask"},
			messages.ChildSpawned{Turn: "t3", Call: "c1", Tool: "ask", Child: "default/test/child", Input: "u1"},
		}}}
	}
	other := messages.AgentID{Tenant: "other", Kind: "test", Key: "boss"}
	loops, child := storyAgent("loops"), storyAgent("child")
	w.store(log, other, frame(messages.Caller{}))
	w.store(log, child, frame(messages.Caller{Agent: other.Full(), Turn: "t3", Call: "c1"}))
	w.store(log, loops, frame(messages.Caller{Agent: loops.Full(), Turn: "t3", Call: "c1"}))
	n := w.node(readsOnly)
	if text := w.whyText(n, child.String(), 4); strings.Count(text, secret) != 1 || !strings.Contains(text, "missing   other/test/boss 0") {
		t.Errorf("of a parent in another tenant:\n%s", text)
	}
	if text := w.whyText(n, loops.String(), 4); strings.Count(text, secret) != 2 {
		t.Errorf("of an agent that is its own parent:\n%s", text)
	}
}

// lose removes frame number i, from 0, from the log of an agent, as a server does that cannot read it.
func (w *world) lose(agent string, i int) {
	w.t.Helper()
	a, err := messages.ParseAgentID(agent)
	w.ok(err)
	for _, raw := range w.stored("REPRISE_LOG_") {
		if !strings.HasSuffix(raw.Subject, "."+a.Kind+"."+a.Key) {
			continue
		}
		if i--; i >= 0 {
			continue
		}
		stream, err := w.js.Stream(w.ctx, w.streamOf(a))
		w.ok(err)
		w.ok(stream.DeleteMsg(w.ctx, raw.Sequence))
		return
	}
	w.t.Fatalf("%s has no such frame", agent)
}

// Of each event of each story of the turn machine the chain names older events alone, but for what became
// of its call and equal calls, and each line has a text.
func TestWhyOfEveryStory(t *testing.T) {
	for _, file := range turntest.Files(t, "../actors/turn/testdata") {
		a := storyAgent(file.Name)
		frames := turntest.Play(t, a, file.Text).Frames
		gone := 0 // frames that a tombstone has removed
		for i, f := range frames {
			if eventlog.Ends(f) {
				gone = i
			}
		}
		for i := gone; i < len(frames); i++ {
			for n := frames[i].First; n <= frames[i].Last(); n++ {
				c := &projections.Causes{N: n}
				for _, f := range frames {
					projections.Fold(f, 0, c)
				}
				why := c.Of(a)
				why.End()
				var own int
				for _, l := range why.Chain {
					newer := l.Relation == projections.CauseThen || l.Relation == projections.CauseDecided || l.Relation == projections.CauseRepeated
					if l.Relation == projections.CauseEvent {
						own++
					}
					if l.Text == "" || l.N == 0 || l.N > n && !newer {
						t.Errorf("%s: why %d: %+v", file.Name, n, l)
					}
				}
				if own != 1 {
					t.Errorf("%s: event %d is %d times in its chain", file.Name, n, own)
				}
			}
		}
	}
}
