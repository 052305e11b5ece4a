package cluster_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// owns waits until a node owns everything.
func (w *world) owns(n *cluster.Node) {
	w.t.Helper()
	w.eventually("the node owns all partitions", func() bool { return n.Partitions() == messages.Partitions })
}

// TestTakeoverNamesTheNode holds that an agent's log names each node that took it over, and
// the node's machine.
func TestTakeoverNamesTheNode(t *testing.T) {
	w := newWorld(t)
	n := w.node()
	w.say(n.Client(), "assistant/a", "1", "hello")
	w.ok(n.Close())
	n = w.node()
	w.say(n.Client(), "assistant/a", "2", "hello again")
	host, err := os.Hostname()
	w.ok(err)
	events := w.events(n.Client(), "assistant/a")
	i := slices.IndexFunc(events, ofType("agent.activated"))
	if i < 0 || events[i].field("node") != n.ID() || events[i].field("host") != host {
		t.Errorf("event %d of %d names neither node %s nor host %s", i+1, len(events), n.ID(), host)
	}
}

func TestKilledInModelCall(t *testing.T) { // A20
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	never, wi := scripted.NewGate(), &wire{}
	replies, err := w.nc.SubscribeSync("my.replies")
	w.ok(err)
	w.node(agents(scripted.New(scripted.Held(never, scripted.Say("lost"))), nil), over(wi))
	in := `{"id":"1","content":"go","reply":"my.replies"}`
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(in)))
	<-never.Reached()
	wi.cut()
	model := scripted.New(scripted.Say("found"))
	n := w.node(agents(model, nil))
	done := w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	events := w.events(n.Client(), "assistant/a")
	if done.field("output") != "found" || model.Calls() != 1 || count(events, "model.restarted") != 1 || count(events, "model.completed") != 1 || count(events, "agent.activated") != 1 {
		t.Errorf("%d calls; %+v", model.Calls(), events)
	}
	for {
		msg, err := replies.NextMsgWithContext(w.ctx)
		w.ok(err)
		if strings.Contains(string(msg.Data), fmt.Sprintf(`"id":"assistant/a.%d"`, done.N)) {
			break
		}
	}
	w.owns(n)
}

func TestKilledAfterTool(t *testing.T) { // A21
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	var runs atomic.Int32
	once := tool.New("once", "", tool.Pause, func(context.Context, struct{}) (string, error) {
		runs.Add(1)
		return "ran", nil
	})
	with := func(d *actors.Definition) { d.Tools = []tool.Tool{once} }
	never, wi := scripted.NewGate(), &wire{}
	w.node(agents(scripted.New(scripted.Ask(scripted.Call{Name: "once", Arguments: "{}"}), scripted.Held(never, scripted.Say("lost"))), with), over(wi))
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("go")))
	<-never.Reached()
	wi.cut()
	n := w.node(agents(scripted.New(scripted.Say("done")), with))
	w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	if runs.Load() != 1 || count(w.events(n.Client(), "assistant/a"), "tool.completed") != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

// Killed between the append and the sending: the reply is sent by the next owner.
func TestReplyAfterKill(t *testing.T) {
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	wi := &wire{}
	replies, err := w.nc.SubscribeSync("my.replies")
	w.ok(err)
	n := w.node(over(wi))
	in := input("1", "hello")
	in.Reply = "my.replies"
	_, err = n.Client().Send(w.ctx, "assistant/a", in)
	w.ok(err)
	done := w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	wi.cut()
	for { // those of the first life, whether they got out or not
		if _, err := replies.NextMsg(time.Millisecond); err != nil {
			break
		}
	}
	w.node()
	for {
		msg, err := replies.NextMsgWithContext(w.ctx)
		w.ok(err)
		if strings.Contains(string(msg.Data), fmt.Sprintf(`"id":"assistant/a.%d"`, done.N)) {
			return
		}
	}
}

// Two nodes on one NATS share the partitions, and each forwards; when the first is cut off it
// takes over; what the first does afterwards is refused; it comes back.
func TestTwoServe(t *testing.T) { // A26
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	gate, wi := scripted.NewGate(), &wire{}
	noop := tool.New("noop", "", tool.ReadOnly, func(context.Context, struct{}) (string, error) { return "ok", nil })
	with := func(d *actors.Definition) { d.Tools = []tool.Tool{noop} }
	looking := scripted.Step{Text: "let me see. ", Calls: []scripted.Call{{Name: "noop", Arguments: "{}"}}}
	slow := scripted.New(scripted.Say("from the first"), looking, scripted.Held(gate, scripted.Say("too late")), scripted.Say("again"))
	first := w.node(agents(slow, with), over(wi))
	second := w.node(agents(scripted.New(scripted.Say("from the second"), scripted.Say("again")), with))
	w.even(first, second)
	agent := w.agentOf(first)
	if got := w.say(second.Client(), agent, "1", "forwarded?"); got.text != "from the first" {
		t.Errorf("forwarded: %+v", got)
	}
	asking, begun := make(chan asked, 1), make(chan struct{})
	looked := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer looked()
		got, err := w.askSeeing(second.Client(), agent, input("2", "and then?"), func(e client.Event) {
			if e.Type == "model.requested" && e.Step == 2 {
				looked()
			}
		})
		if err != nil {
			t.Error(err)
		}
		asking <- got
	}()
	<-gate.Reached()
	<-begun // the caller has the first model call whole; else its text would come again
	wi.cut()
	w.owns(second)
	if got := <-asking; got.text != "let me see. from the second" || got.end.Output != "from the second" {
		t.Errorf("the ask that saw the change: %+v", got)
	}
	before := w.events(second.Client(), agent)
	wi.heal()
	gate.Release() // the first node's answer comes now
	w.eventually("the first steps down and says so", func() bool {
		log := w.log.String()
		return strings.Contains(log, "stepped down") && strings.Contains(log, "member="+first.ID())
	})
	w.eventually("the first is a member again and forwards", func() bool {
		got, err := w.ask(first.Client(), agent, input("3", "who?"))
		return err == nil && got.text == "again"
	})
	after := w.events(second.Client(), agent)
	for i, e := range before {
		if string(after[i].Data) != string(e.Data) {
			t.Errorf("event %d changed", e.N)
		}
	}
	for _, e := range after {
		if strings.Contains(string(e.Data), "too late") {
			t.Errorf("a late write: %s", e.Data)
		}
	}
	w.ok(second.Close())
	w.owns(first)
}

// The other takes over when an owner leaves in order, at once and without loss.
func TestLeaveInOrder(t *testing.T) {
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	first := w.node()
	second := w.node()
	w.say(first.Client(), "assistant/a", "1", "hello")
	w.ok(first.Close())
	w.owns(second)
	if got := w.say(second.Client(), "assistant/a", "1", "hello"); got.text != "you said hello" {
		t.Errorf("%+v", got)
	}
	w.eventually("every agent is seen to be the second's", func() bool {
		all, its := 0, 0
		for line, err := range second.Client().QueryTenant(w.ctx, "default", messages.Query{View: "agents"}) {
			w.ok(err)
			all++
			if strings.Contains(string(line), `"owner":"`+second.ID()+`"`) {
				its++
			}
		}
		return all > 0 && its == all
	})
}

// A stream through another node continues when the owner is gone, also for a caller that cannot
// ask again.
func TestStreamsSurviveTheOwner(t *testing.T) { // A26 A85
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	never, wi := scripted.NewGate(), &wire{}
	first := w.node(agents(scripted.Func(func(messagesRequest) scripted.Step { return scripted.Held(never, scripted.Say("never")) }), nil), over(wi))
	second := w.node(agents(scripted.Func(func(messagesRequest) scripted.Step { return scripted.Say("at last") }), nil))
	w.even(first, second)
	tap, err := w.nc.SubscribeSync("_actor.reprise.own.*")
	w.ok(err)
	owners := store[gateway.PartitionRow](w, second, "partitions")
	replies, err := w.nc.SubscribeSync("my.callers.*")
	w.ok(err)
	w.ok(w.nc.Flush())
	caller := ""
	for i := 0; caller == ""; i++ { // which endpoint takes it is the server's choice
		a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}
		if owners[a.Partition()].Owner != first.ID() {
			continue
		}
		reply := fmt.Sprintf("my.callers.%d", i)
		w.ok(w.nc.PublishRequest(fmt.Sprintf("agents.prompt.assistant.default.k%d", i), reply, []byte("hello")))
		for acked := false; !acked; {
			msg, err := replies.NextMsgWithContext(w.ctx)
			w.ok(err)
			acked = msg.Subject == reply && strings.Contains(string(msg.Data), "ack")
		}
		for {
			msg, err := tap.NextMsg(time.Millisecond)
			if err != nil {
				break
			}
			var routed struct {
				Command struct {
					Agent string `json:"a"`
				} `json:"c"`
			}
			if err := messages.UnpackKnown(msg.Data, &routed); err == nil && routed.Command.Agent == a.Full() {
				caller = reply
			}
		}
	}
	<-never.Reached()
	wi.cut()
	said := ""
	for over := false; !over; {
		msg, err := replies.NextMsgWithContext(w.ctx)
		w.ok(err)
		if msg.Subject == caller {
			if why := msg.Header.Get("Nats-Service-Error"); why != "" {
				t.Fatal(why)
			}
			said += string(msg.Data)
			over = len(msg.Data) == 0
		}
	}
	if !strings.Contains(said, `"at last"`) || strings.Count(said, `"type":"input.accepted"`) != 1 || strings.Count(said, `"type":"turn.completed"`) != 1 {
		t.Error(said)
	}
}

// Killed with inputs in every state of being applied: none is lost, none doubled.
func TestKilledUnderLoad(t *testing.T) { // A6 A20
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	const inputs = 300
	called := make(chan string, 10*inputs)
	model := scripted.Func(func(r messagesRequest) scripted.Step {
		called <- r.Agent.Key
		return scripted.Say("ok")
	})
	wi := &wire{}
	w.node(agents(model, nil), over(wi))
	for i := range inputs {
		w.ok(w.nc.Publish(fmt.Sprintf("reprise.in.default.assistant.k%d", i), []byte("hello")))
	}
	w.ok(w.nc.Flush())
	for range 10 {
		<-called
	}
	wi.cut()
	c := w.node(agents(model, nil)).Client()
	for i := range inputs {
		agent := fmt.Sprintf("assistant/k%d", i)
		w.until(c, agent, ofType("turn.completed"))
		if events := w.events(c, agent); count(events, "input.accepted") != 1 || count(events, "turn.started") != 1 || count(events, "turn.completed") != 1 {
			t.Errorf("%s: %+v", agent, events)
		}
	}
}
