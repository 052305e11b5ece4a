package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// owns waits until a node owns everything.
func (w *world) owns(n *cluster.Node) {
	w.t.Helper()
	w.eventually("the node owns all partitions", func() bool { return n.Partitions() == messages.Partitions })
}

func TestKilledInModelCall(t *testing.T) { // A20
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
	w := newWorld(t)
	var runs atomic.Int32
	once := tool.New("once", "", tool.Once, func(context.Context, struct{}) (string, error) {
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

// Two nodes on one NATS: the second forwards; when the first is cut off it
// takes over; what the first does afterwards is refused; it comes back.
func TestTwoServe(t *testing.T) { // A26
	w := newWorld(t)
	gate, wi := scripted.NewGate(), &wire{}
	slow := scripted.New(scripted.Say("from the first")).Then(scripted.Held(gate, scripted.Say("too late")))
	first := w.node(agents(slow, nil), over(wi))
	second := w.node(agents(scripted.New(scripted.Say("from the second"), scripted.Say("again")), nil))
	if first.Partitions() != 64 || second.Partitions() != 0 {
		t.Fatalf("%d and %d partitions", first.Partitions(), second.Partitions())
	}
	if got := w.say(second.Client(), "assistant/a", "1", "forwarded?"); got.text != "from the first" {
		t.Errorf("forwarded: %+v", got)
	}
	asking := make(chan asked, 1)
	go func() {
		got, err := w.ask(second.Client(), "assistant/a", input("2", "and then?"))
		if err != nil {
			t.Error(err)
		}
		asking <- got
	}()
	<-gate.Reached()
	wi.cut()
	w.owns(second)
	if got := <-asking; !strings.HasSuffix(got.text, "from the second") || got.end.Output != "from the second" {
		t.Errorf("the ask that saw the change: %+v", got)
	}
	before := w.events(second.Client(), "assistant/a")
	wi.heal()
	gate.Release() // the first node's answer comes now
	w.eventually("the first has stepped down", func() bool { return first.Partitions() == 0 })
	w.eventually("the first is a member again and forwards", func() bool {
		got, err := w.ask(first.Client(), "assistant/a", input("3", "who?"))
		return err == nil && got.text == "again"
	})
	after := w.events(second.Client(), "assistant/a")
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

// A standby takes over when the owner leaves in order, at once and without loss.
func TestLeaveInOrder(t *testing.T) {
	w := newWorld(t)
	first := w.node()
	second := w.node()
	w.say(first.Client(), "assistant/a", "1", "hello")
	w.ok(first.Close())
	w.owns(second)
	if got := w.say(second.Client(), "assistant/a", "1", "hello"); got.text != "you said hello" {
		t.Errorf("%+v", got)
	}
	for line, err := range second.Client().QueryTenant(w.ctx, "default", messages.Query{View: "agents"}) {
		w.ok(err)
		if !strings.Contains(string(line), `"owner":"`+second.ID()+`"`) {
			t.Errorf("%s", line)
		}
	}
}

// A frame of the owner before, that comes when the new one believes the agent
// idle: it is noticed, fenced and its turn finished.
func TestLateFirstFrame(t *testing.T) { // A107
	w := newWorld(t)
	n := w.node()
	w.ok(n.Close())
	n = w.node(agents(scripted.New(scripted.Say("finished")), nil)) // its epochs are higher than 1
	log, e := w.lateFrame(messages.AgentID{Tenant: "default", Kind: "assistant", Key: "late"})
	_, err := log.Append(w.ctx, e)
	w.ok(err)
	done := w.until(n.Client(), "assistant/late", ofType("turn.completed"))
	events := w.events(n.Client(), "assistant/late")
	if done.field("output") != "finished" || count(events, "agent.activated") != 1 {
		t.Errorf("%+v", events)
	}
}

// lateFrame is the first frame of a turn under epoch 1.
func (w *world) lateFrame(a messages.AgentID) (*natslog.Log, eventlog.Entry) {
	w.t.Helper()
	nc, err := natslog.Connect(w.url)
	w.ok(err)
	w.t.Cleanup(nc.Close)
	log, err := natslog.Open(w.ctx, natslog.Config{Conns: []*nats.Conn{nc}})
	w.ok(err)
	f := &messages.Frame{
		ID: messages.FrameID(ulid.Make().String()), Epoch: 1, First: 1, Time: time.Now().UTC(), Cause: messages.Cause{Type: "input", ID: "1"},
		Events: []messages.Event{
			messages.AgentCreated{Agent: a.Full()},
			messages.AgentConfigured{Definition: strings.Repeat("0", 64), Model: "test/model"},
			messages.InputAccepted{Input: "1", Disposition: messages.Started, Turn: "t4", Content: messages.TextContent("go")},
			messages.TurnStarted{Turn: "t4", Inputs: []string{"1"}, Definition: strings.Repeat("0", 64), MaxSteps: 20},
			messages.ModelRequested{Turn: "t4", Step: 1, Attempt: 1, Call: "m5", Model: "test/model", Inputs: []string{"1"}},
		},
	}
	b, err := messages.EncodeFrame(a, f)
	w.ok(err)
	return log, eventlog.Entry{Agent: a, Frame: f, Bytes: b, Summary: eventlog.Summary{Phase: eventlog.Running, Turn: "t4", Open: true}}
}

// The steps of a turn are counted across a change of owner.
func TestStepLimitAcrossOwners(t *testing.T) { // A17
	w := newWorld(t)
	noop := tool.New("noop", "", tool.Pure, func(context.Context, struct{}) (string, error) { return "ok", nil })
	with := func(d *actors.Definition) { d.Tools, d.MaxSteps = []tool.Tool{noop}, 4 }
	call := scripted.Ask(scripted.Call{Name: "noop", Arguments: "{}"})
	gate, wi := scripted.NewGate(), &wire{}
	w.node(agents(scripted.New(call, scripted.Held(gate, call)), with), over(wi))
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("go")))
	<-gate.Reached()
	wi.cut()
	model := scripted.New(call, call, call, scripted.Say("at last"))
	n := w.node(agents(model, with))
	failed := w.until(n.Client(), "assistant/a", ofType("turn.failed"))
	if failed.field("reason") != "max_steps" || count(w.events(n.Client(), "assistant/a"), "model.completed") != 4 {
		t.Errorf("%s after %d calls", failed.Data, model.Calls())
	}
	_, err := n.Client().Do(w.ctx, "assistant/a", messages.Resume{MaxSteps: 6})
	w.ok(err)
	w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	var list []string
	for line, err := range n.Client().Query(w.ctx, "assistant/a", messages.Query{View: "history"}) {
		w.ok(err)
		var item struct{ Type string }
		w.ok(json.Unmarshal(line, &item))
		list = append(list, item.Type)
	}
	if got := count(w.events(n.Client(), "assistant/a"), "tool.completed"); got < 4 || len(list) < 9 {
		t.Errorf("%d tools ran; history %v", got, list)
	}
}
