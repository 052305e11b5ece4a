package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
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

// family is root, middle and leaf, each the tool of the one above; the leaf pays.
type family struct {
	mu   sync.Mutex
	paid map[string]int // by idempotency key
	free bool           // paying wants no approval
	// held are gates of models, by "kind" for the first call of an agent of that
	// kind and by "kind again" for its second.
	held map[string]*scripted.Gate
}

func (f *family) answer(r providers.Request) scripted.Step {
	last := r.Items[len(r.Items)-1]
	step, at := scripted.Say(r.Agent.Kind+": "+last.Output), r.Agent.Kind
	if last.Type == messages.ItemCallOutput {
		at += " again"
	} else {
		name, arguments := "pay", "{}"
		if below := map[string]string{"root": "middle", "middle": "leaf"}[r.Agent.Kind]; below != "" {
			name, arguments = below, fmt.Sprintf(`{"input":%q}`, last.Content.Text())
		}
		step = scripted.Ask(scripted.Call{ID: "c1", Name: name, Arguments: arguments})
	}
	step.Usage, step.Pieces = messages.Usage{Input: 10, Output: 1}, 2
	f.mu.Lock()
	defer f.mu.Unlock()
	if gate := f.held[at]; gate != nil {
		delete(f.held, at)
		step = scripted.Held(gate, step)
	}
	return step
}

func (f *family) agents() change {
	pay := tool.New("pay", "pays", tool.Rerun, func(ctx context.Context, _ struct{}) (string, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.paid == nil {
			f.paid = make(map[string]int)
		}
		f.paid[tool.Key(ctx)]++
		return "paid", nil
	})
	if !f.free {
		pay = pay.ApproveAlways()
	}
	return func(c *cluster.Config) {
		c.Providers = providers.Set{"test": scripted.Func(f.answer)}
		c.Agents = nil
		for kind, tools := range map[string][]tool.Tool{
			"root": {actors.AsTool("middle", "asks middle")}, "middle": {actors.AsTool("leaf", "asks leaf")}, "leaf": {pay},
		} {
			c.Agents = append(c.Agents, actors.Definition{Kind: kind, Model: "test/m", Tools: tools})
		}
	}
}

// viewOf reads a view of an agent.
func viewOf[T any](w *world, c *client.Client, agent, view string) (list []T) {
	w.t.Helper()
	for line, err := range c.Query(w.ctx, agent, messages.Query{View: view}) {
		w.ok(err)
		var v T
		w.ok(json.Unmarshal(line, &v))
		list = append(list, v)
	}
	return list
}

// A call two levels down is asked about on the stream of the caller that prompted
// the root, and decided there. The stream and the root's live subject carry what the
// agents below say, tagged with the call and the agent, and apart from the answer.
func TestChildrenOverTheDoors(t *testing.T) { // A45, A70, A52
	w := newWorld(t)
	f := new(family)
	live, err := w.nc.SubscribeSync("reprise.live.default.root.r")
	w.ok(err)
	w.ok(w.nc.Flush())
	c := w.node(f.agents(), func(c *cluster.Config) { c.PromptDecides = func(string, string) bool { return true } }).Client()
	text, below, last := "", make(map[string]string), client.Event{}
	for ev, err := range c.AskFacts(w.ctx, "root/r", input("u1", "pay it")) {
		w.ok(err)
		last = ev
		switch {
		case ev.Type == "delta":
			text += ev.Text
		case ev.Type == "child.text":
			below[strings.Split(ev.Child, "/")[0]+" "+string(ev.ChildCall)] += ev.Text
		case ev.Question != nil:
			if !strings.Contains(ev.Question.Prompt, "Agent leaf/sub-") {
				t.Errorf("asked %q", ev.Question.Prompt)
			}
			approvals := viewOf[messages.Approval](w, c, "root/r", "approvals")
			if len(approvals) != 1 || approvals[0].Agent.Kind != "leaf" || approvals[0].Tool != "pay" {
				t.Errorf("the root lists %+v", approvals)
			}
			w.ok(c.Answer(w.ctx, *ev.Question, "yes"))
		}
	}
	if text != "root: middle: leaf: paid" || below["leaf c1"] != "leaf: paid" || below["middle c1"] != "middle: leaf: paid" {
		t.Errorf("the root says %q, below it %v", text, below)
	}
	if last.Usage == nil || *last.Usage != (messages.Usage{Input: 60, Output: 6}) {
		t.Errorf("the turn used %+v", last.Usage)
	}
	for heard := ""; !strings.Contains(heard, "leaf: paid"); {
		msg, err := live.NextMsgWithContext(w.ctx)
		w.ok(err)
		var d struct{ Type, Text, Child, Call string }
		w.ok(json.Unmarshal(msg.Data, &d))
		if d.Type == "child.text" && strings.HasPrefix(d.Child, "leaf/") && d.Call == "c1" {
			heard += d.Text
		}
	}
	children := viewOf[projections.Child](w, c, "root/r", "children")
	if len(children) != 1 || children[0].Status != projections.ChildCompleted || children[0].Usage.Input != 40 {
		t.Errorf("children %+v", children)
	}
	shown := viewOf[projections.AgentStatus](w, c, children[0].Agent.String(), "show")
	if shown[0].Parent == nil || shown[0].Parent.Agent != "default/root/r" || len(shown[0].Children) != 1 {
		t.Errorf("the middle is shown as %+v", shown[0])
	}
}

// A node is killed at each place of the story; another one continues. Every call ends
// once.
func TestChildrenAfterKill(t *testing.T) { // A71
	embeddedtest.Long(t, "several nodes")
	for _, at := range []string{"root", "middle", "leaf", "leaf again", "middle again", "root again"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			never, wi := scripted.NewGate(), &wire{}
			f := &family{free: true, held: map[string]*scripted.Gate{at: never}}
			w.node(f.agents(), over(wi))
			w.ok(w.nc.Publish("reprise.in.default.root.r", []byte("pay it")))
			<-never.Reached()
			wi.cut()
			n := w.node(f.agents())
			done := w.until(n.Client(), "root/r", ofType("turn.completed"))
			f.once(w, n.Client(), "root/r", done)
			w.owns(n)
		})
	}
}

// once holds that the story has ended once at every level.
func (f *family) once(w *world, c *client.Client, root string, done event) {
	w.t.Helper()
	if done.field("output") != "root: middle: leaf: paid" {
		w.t.Errorf("%s answers %q", root, done.field("output"))
	}
	for _, want := range []string{"root", "middle", "leaf"} {
		all := w.events(c, root)
		if !strings.HasPrefix(root, want+"/") || count(all, "turn.completed") != 1 || count(all, "tool.completed") != 1 || count(all, "input.accepted") != 1 {
			w.t.Errorf("%s is no %s that has ended once: %+v", root, want, all)
		}
		if children := viewOf[projections.Child](w, c, root, "children"); want != "leaf" {
			root = children[0].Agent.String()
		}
	}
}

// Many families are under way when their node is killed: each call ends once.
func TestManyChildrenAfterKill(t *testing.T) { // A71
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	f, wi := &family{free: true}, &wire{}
	n := w.node(f.agents(), over(wi))
	const roots = 16
	for i := range roots {
		_, err := w.js.Publish(w.ctx, fmt.Sprintf("reprise.in.default.root.r%d", i), []byte("pay it"))
		w.ok(err)
	}
	w.until(n.Client(), "root/r3", ofType("child.spawned"))
	wi.cut()
	n = w.node(f.agents())
	for i := range roots {
		root := fmt.Sprintf("root/r%d", i)
		f.once(w, n.Client(), root, w.until(n.Client(), root, ofType("turn.completed")))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.paid) != roots {
		t.Errorf("%d of %d were paid: %v", len(f.paid), roots, f.paid)
	}
}

// A task that its child refuses is reported to the parent. A task or a report that is published
// as an input or a command is refused.
func TestTasksThatAreRefused(t *testing.T) { // A71
	w := newWorld(t)
	c := w.node().Client()
	w.say(c, "assistant/p", "u1", "hello")
	js, err := jetstream.New(w.connect())
	w.ok(err)
	task := `{"type":"task","id":"t1","content":"do it","parent":{"agent":"default/assistant/p","turn":"t4","call":"c1"}}`
	w.say(c, "assistant/gone", "u1", "hello")
	_, err = c.Do(w.ctx, "assistant/gone", messages.Delete{})
	w.ok(err)
	w.until(c, "assistant/gone", ofType("agent.deleted"))
	gone := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "gone"}
	_, err = js.Publish(w.ctx, messages.Subjects{}.Peer(gone), []byte(task))
	w.ok(err)
	noop := w.until(c, "assistant/p", ofType("command.noop"))
	if noop.field("command") != "report" {
		t.Errorf("the parent hears %+v", noop)
	}
	w.letters(c, "default", 1) // its dead letter may come after the report to the parent
	_, err = js.Publish(w.ctx, "reprise.in.default.assistant.x", []byte(task))
	w.ok(err)
	letters := w.letters(c, "default", 2)
	if why := letters[1].Reason; !strings.Contains(why, "only inputs are accepted here") {
		t.Errorf("a task on an input subject: %s", why)
	}

	// A user who may decide for one agent cannot make it speak to another.
	report := `{"type":"report","id":"r1","turn":"t4","call":"c1","child":"default/assistant/x","n":1,"what":"waiting","waiting":[{"agent":"default/assistant/p","turn":"t1","call":"c9","kind":"approval"}]}`
	for i, body := range []string{task, report, strings.Replace(task, "task", "cancel_child", 1)} { // A103
		_, err = js.Publish(w.ctx, "reprise.ctl.default.assistant.x", []byte(body))
		w.ok(err)
		letters = w.letters(c, "default", 3+i)
		if why := letters[2+i].Reason; !strings.Contains(why, "agents give one another") {
			t.Errorf("%s was refused by %q", body, why)
		}
	}
	w.say(c, "assistant/x", "u1", "hello")
	if heard := w.events(c, "assistant/p"); count(heard, "command.noop") != 1 {
		t.Errorf("the parent heard %d commands, want one", count(heard, "command.noop"))
	}
}

// A node that does not know an agent's kind sends the report that the agent owes its parent, when
// the node that ended its task died before it did.
func TestUnknownKindsTellAfterKill(t *testing.T) { // A71
	w := newWorld(t)
	leaf := messages.AgentID{Tenant: "default", Kind: "leaf", Key: "l"}
	log, e := w.lateFrame(leaf)
	e.Frame.Events = []messages.Event{
		messages.AgentCreated{Agent: leaf.Full()},
		messages.InputRecalled{Input: "t1", Parent: messages.Parent{Caller: messages.Caller{Agent: "default/assistant/r", Turn: "t1", Call: "c1"}}},
	}
	e.Summary = eventlog.Summary{Phase: messages.PhaseIdle, Open: true}
	var err error
	e.Bytes, err = messages.EncodeFrame(leaf, e.Frame)
	w.ok(err)
	_, err = log.Append(w.ctx, e)
	w.ok(err)
	w.until(w.node().Client(), leaf.String(), ofType("child.reported"))
}

// A node comes that does not know the kinds of a family that is under way. A task is
// held there; what was begun can be deleted; a node that knows them continues.
func TestChildrenOfUnknownKinds(t *testing.T) { // A71, A108
	w := newWorld(t)
	never := scripted.NewGate()
	f := &family{free: true, held: map[string]*scripted.Gate{"leaf": never}}
	first := w.node(f.agents())
	w.ok(w.nc.Publish("reprise.in.default.root.r", []byte("pay it")))
	<-never.Reached()
	w.ok(w.nc.Publish("reprise.in.default.root.s", []byte("pay it"))) // now, for one leaf is held
	w.until(first.Client(), "root/s", ofType("turn.completed"))
	middle := viewOf[projections.Child](w, first.Client(), "root/r", "children")[0].Agent
	w.ok(first.Close())

	other := w.node()
	js, err := jetstream.New(w.connect())
	w.ok(err)
	late := messages.AgentID{Tenant: "default", Kind: "leaf", Key: "late"}
	task, err := messages.Body(messages.Task{ID: "t1", Content: messages.TextContent("pay it"), Parent: messages.Parent{Caller: messages.Caller{Agent: "default/root/s", Turn: "t1", Call: "c7"}}})
	w.ok(err)
	_, err = js.Publish(w.ctx, messages.Subjects{}.Peer(late), task)
	w.ok(err)
	c := other.Client()
	_, err = c.Do(w.ctx, middle.String(), messages.Delete{Reason: "its kind is gone"})
	w.ok(err)
	w.until(c, middle.String(), ofType("agent.deleted"))
	if letters := w.letters(c, "default", 0); len(letters) != 0 {
		t.Errorf("refused was %+v", letters)
	}
	w.ok(other.Close())

	c = w.node(f.agents()).Client()
	if done := w.until(c, late.String(), ofType("turn.completed")); done.field("output") != "leaf: paid" {
		t.Errorf("the late leaf says %s", done.Data)
	}
	if done := w.until(c, "root/r", ofType("turn.completed")); !strings.Contains(done.field("output"), "no answer") {
		t.Errorf("the root of what was deleted says %s", done.Data)
	}
}
