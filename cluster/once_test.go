package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

func TestSameIDOnTwoDoorsAndAfterRestart(t *testing.T) { // A8
	w := newWorld(t)
	model := echo()
	n := w.node(agents(model, nil))
	first := w.say(n.Client(), "assistant/a", "same", "hello")
	again := w.say(n.Client(), "assistant/a", "same", "something else")
	if again.text != "you said hello" || again.end.N != first.end.N || again.end.Output != first.end.Output {
		t.Errorf("asked again: %+v, first %+v", again, first)
	}
	answer := w.told("reprise.in.default.assistant.a", `{"id":"same","content":"by the other door"}`)
	if !answer.Duplicate || answer.N != first.events[0].N || answer.Turn != first.end.Turn {
		t.Errorf("the other door: %+v", answer)
	}
	if other := w.say(n.Client(), "assistant/b", "same", "hi"); other.text != "you said hi" {
		t.Errorf("another agent: %+v", other)
	}
	w.ok(n.Close())
	n = w.node(agents(model, nil))
	if late := w.say(n.Client(), "assistant/a", "same", "after the restart"); late.text != "you said hello" || late.end.N != first.end.N {
		t.Errorf("after the restart: %+v", late)
	}
	if model.Calls() != 2 || count(w.events(n.Client(), "assistant/a"), "turn.started") != 1 {
		t.Errorf("%d model calls", model.Calls())
	}
}

// told publishes to an input or command subject and waits for the answer.
func (w *world) told(subject, body string) (got client.Answer) {
	w.t.Helper()
	sub, err := w.nc.SubscribeSync(w.nc.NewInbox())
	w.ok(err)
	defer func() { _ = sub.Unsubscribe() }()
	msg := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{messages.HeaderReply: {sub.Subject}}}
	w.ok(w.nc.PublishMsg(msg))
	reply, err := sub.NextMsgWithContext(w.ctx)
	w.ok(err)
	w.ok(json.Unmarshal(reply.Data, &got))
	return got
}

func TestInterruptDeliveredTwice(t *testing.T) { // A105 A11
	w := newWorld(t)
	one, two := scripted.NewGate(), scripted.NewGate()
	model := scripted.New(scripted.Held(one, scripted.Say("never")), scripted.Held(two, scripted.Say("second")))
	c := w.node(agents(model, nil)).Client()
	_, err := c.Send(w.ctx, "assistant/a", input("1", "first"))
	w.ok(err)
	<-one.Reached()
	_, err = c.Send(w.ctx, "assistant/a", input("2", "then this"))
	w.ok(err)
	stop := `{"type":"interrupt","id":"stop","reason":"enough"}`
	first := w.told("reprise.ctl.default.assistant.a", stop)
	<-two.Reached()
	second := w.told("reprise.ctl.default.assistant.a", stop)
	if first.Duplicate || !second.Duplicate || first.N != second.N || first.Turn == "" || first.Turn != second.Turn {
		t.Errorf("first %+v, second %+v", first, second)
	}
	two.Release()
	done := w.until(c, "assistant/a", ofType("turn.completed"))
	events := w.events(c, "assistant/a")
	if done.field("output") != "second" || count(events, "turn.aborted") != 1 || count(events, "turn.started") != 2 {
		t.Errorf("%s; %d aborted", done.Data, count(events, "turn.aborted"))
	}
	notes := 0
	for _, item := range model.Requests()[1].Items {
		if strings.Contains(item.Content.Text(), "enough") {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("%d boundary notes in %+v", notes, model.Requests()[1].Items)
	}
	if idle := w.told("reprise.ctl.default.assistant.a", `{"type":"interrupt","id":"other"}`); !strings.Contains(idle.Noop, "nothing to interrupt") {
		t.Errorf("idle: %+v", idle)
	}
}

func TestAbortGoesOnWithoutNote(t *testing.T) { // A12
	w := newWorld(t)
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("never")), scripted.Say("second"))
	c := w.node(agents(model, nil)).Client()
	for i, text := range []string{"first", "then this"} {
		_, err := c.Send(w.ctx, "assistant/a", input(fmt.Sprint(i), text))
		w.ok(err)
	}
	<-gate.Reached()
	w.until(c, "assistant/a", func(e event) bool { return e.field("disposition") == "queued" })
	_, err := c.Do(w.ctx, "assistant/a", messages.Abort{Reason: "no more"})
	w.ok(err)
	w.until(c, "assistant/a", ofType("turn.completed"))
	for _, item := range model.Requests()[1].Items {
		if item.Role == messages.RoleDeveloper {
			t.Errorf("a note: %+v", item)
		}
	}
}

// A redelivery is the same input, whether it was applied before or not.
func TestRedelivery(t *testing.T) { // A106
	w := newWorld(t)
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("one"))).Then(scripted.Say("two"), scripted.Say("three"))
	cutOff := &wire{}
	n := w.node(agents(model, nil), over(cutOff))
	stream, err := w.js.Stream(w.ctx, "REPRISE_IN")
	w.ok(err)
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	filter := "reprise.inq." + a.Partition().String() + ".in.default.assistant.a"

	// The acknowledgements of the first life are lost: it is cut off while its
	// input is in the log and, for all that the stream knows, not applied.
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("no id")))
	<-gate.Reached()
	accepted := w.events(n.Client(), "assistant/a")
	cutOff.cut()
	w.ok(n.Close())
	// The stream message comes again, as it is after a lost acknowledgement.
	again := nats.NewMsg(filter)
	again.Data = []byte(`{"content":"no id","id":"` + accepted[2].field("input") + `"}`)
	_, err = w.js.PublishMsg(w.ctx, again)
	w.ok(err)
	gate.Release()
	n = w.node(agents(model, nil))
	w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	w.eventually("the queue is empty", func() bool {
		info, err := stream.Info(w.ctx)
		w.ok(err)
		return info.State.Msgs == 0
	})
	events := w.events(n.Client(), "assistant/a")
	if count(events, "input.accepted") != 1 || count(events, "turn.started") != 1 || count(events, "turn.completed") != 1 {
		t.Errorf("%+v", events)
	}
	// A consumer made anew before the acknowledgement delivers the same message.
	w.ok(stream.DeleteConsumer(w.ctx, "p"+a.Partition().String()))
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("another")))
	w.until(n.Client(), "assistant/a", func(e event) bool { return e.field("output") == "three" || e.Type == "turn.failed" })
	if turns := count(w.events(n.Client(), "assistant/a"), "turn.started"); turns != 2 {
		t.Errorf("%d turns", turns)
	}
}

// The consumer is lost again and again while inputs come.
func TestLostConsumers(t *testing.T) { // A106 A7
	w := newWorld(t)
	c := w.node().Client()
	stream, err := w.js.Stream(w.ctx, "REPRISE_IN")
	w.ok(err)
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	const inputs = 60
	for i := range inputs {
		w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(fmt.Sprint(i))))
		if i%20 == 10 {
			_ = stream.DeleteConsumer(w.ctx, "p"+a.Partition().String()) // it may be on its way
		}
	}
	done := 0
	w.until(c, "assistant/a", func(e event) bool {
		if e.Type == "turn.completed" {
			if want := fmt.Sprintf("you said %d", done); e.field("output") != want {
				t.Errorf("turn %d: %s", done, e.Data)
			}
			done++
		}
		return done == inputs
	})
	if got := count(w.events(c, "assistant/a"), "input.accepted"); got != inputs {
		t.Errorf("%d inputs accepted", got)
	}
}

func TestCallerGoesAway(t *testing.T) { // A18
	w := newWorld(t)
	gate := scripted.NewGate()
	model := scripted.New(scripted.Held(gate, scripted.Say("to nobody")))
	n := w.node(agents(model, nil))
	ctx, leave := context.WithCancel(w.ctx)
	go func() {
		<-gate.Reached()
		leave()
	}()
	for range n.Client().AskInput(ctx, "assistant/a", input("1", "hello")) {
	}
	gate.Release()
	w.until(n.Client(), "assistant/a", ofType("turn.completed"))

	past := time.Now().Add(-time.Second)
	late := input("2", "too late")
	late.Deadline = &past
	if _, err := w.ask(n.Client(), "assistant/b", late); messages.AsError(err).Code != messages.Expired {
		t.Errorf("past its deadline: %v", err)
	}
	got := w.request("agents.prompt.assistant.default.b", "hi", messages.HeaderDeadline, past.UTC().Format(time.RFC3339Nano))
	if got.code != "400" || model.Calls() != 1 {
		t.Errorf("%+v, %d model calls", got, model.Calls())
	}
}

func TestThousandInputs(t *testing.T) { // A7 A1
	w := newWorld(t)
	var mu sync.Mutex
	var order []string
	running := 0
	model := scripted.Func(func(r messagesRequest) scripted.Step {
		mu.Lock()
		defer mu.Unlock()
		if running++; running != 1 {
			t.Error("two turns at once")
		}
		order = append(order, lastUser(r))
		running--
		return scripted.Say("ok")
	})
	c := w.node(agents(model, nil)).Client()
	const publishers, each = 20, 50
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
	if <-both == <-both {
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
