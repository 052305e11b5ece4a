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

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

func TestSameIDOnTwoEndpointsAndAfterRestart(t *testing.T) { // A8
	w := newWorld(t)
	model := echo()
	n := w.node(agents(model, nil))
	first := w.say(n.Client(), "assistant/a", "same", "hello")
	again := w.say(n.Client(), "assistant/a", "same", "hello")
	if again.text != "you said hello" || again.end.N != first.end.N || again.end.Output != first.end.Output {
		t.Errorf("asked again: %+v, first %+v", again, first)
	}
	answer := w.told("reprise.in.default.assistant.a", `{"id":"same","content":"hello"}`)
	if !answer.Duplicate || answer.N != first.events[0].N || answer.Turn != first.end.Turn {
		t.Errorf("the other endpoint: %+v", answer)
	}
	if answer := w.told("reprise.in.default.assistant.a", `{"id":"same","content":"something else"}`); answer.Err == nil || answer.Err.Code != messages.Conflict {
		t.Errorf("the same id with other content: %+v", answer)
	}
	if other := w.say(n.Client(), "assistant/b", "same", "hi"); other.text != "you said hi" {
		t.Errorf("another agent: %+v", other)
	}
	w.ok(n.Close())
	n = w.node(agents(model, nil))
	if late := w.say(n.Client(), "assistant/a", "same", "hello"); late.text != "you said hello" || late.end.N != first.end.N {
		t.Errorf("after the restart: %+v", late)
	}
	if model.Calls() != 2 || count(w.events(n.Client(), "assistant/a"), "turn.started") != 1 {
		t.Errorf("%d model calls", model.Calls())
	}
}

// told publishes to an input or command subject and waits for the answer.
func (w *world) told(subject, body string) (got messages.Answer) {
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

func TestInterruptDeliveredTwice(t *testing.T) { // A105
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

// Killed while its input is in the log and, for all that the sender knows, not
// applied: it comes again, and is the same.
func TestSentAgainAfterKill(t *testing.T) { // A8
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	never, wi := scripted.NewGate(), &wire{}
	w.node(agents(scripted.New(scripted.Held(never, scripted.Say("never"))), nil), over(wi))
	body := []byte(`{"id":"order-7","content":"go"}`)
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", body))
	<-never.Reached()
	wi.cut()
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", body))
	c := w.node(agents(scripted.New(scripted.Say("done")), nil)).Client()
	w.until(c, "assistant/a", ofType("turn.completed"))
	stream, err := w.js.Stream(w.ctx, "REPRISE_IN")
	w.ok(err)
	w.eventually("the queue is empty", func() bool {
		info, err := stream.Info(w.ctx)
		w.ok(err)
		return info.State.Msgs == 0
	})
	events := w.events(c, "assistant/a")
	if count(events, "input.accepted") != 1 || count(events, "turn.started") != 1 || count(events, "turn.completed") != 1 {
		t.Errorf("%+v", events)
	}
}

// The consumer is lost again and again while inputs without ids come: none of them is
// lost or doubled, and their order is kept.
func TestLostConsumers(t *testing.T) { // A7
	w := newWorld(t)
	c := w.node().Client()
	stream, err := w.js.Stream(w.ctx, "REPRISE_IN")
	w.ok(err)
	partition := "p" + messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}.Partition().String()
	lose := func() {
		names := stream.ConsumerNames(w.ctx)
		for name := range names.Name() {
			if before, _, _ := strings.Cut(name, "-"); before == partition {
				_ = stream.DeleteConsumer(w.ctx, name) // it may be on its way
			}
		}
	}
	const inputs = 60
	for i := range inputs {
		w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(fmt.Sprint(i))))
	}
	done := 0
	w.until(c, "assistant/a", func(e event) bool {
		if e.Type == "turn.completed" {
			if want := fmt.Sprintf("you said %d", done); e.field("output") != want {
				t.Errorf("turn %d: %s", done, e.Data)
			}
			if done++; done%20 == 5 {
				lose()
			}
		}
		return done == inputs
	})
	w.eventually("the queue is empty", func() bool {
		info, err := stream.Info(w.ctx)
		w.ok(err)
		return info.State.Msgs == 0
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
	if _, err := w.ask(n.Client(), "assistant/b", late); codeOf(err) != messages.Expired {
		t.Errorf("past its deadline: %v", err)
	}
	got := w.request("agents.prompt.assistant.default.b", "hi", messages.HeaderDeadline, past.UTC().Format(time.RFC3339Nano))
	if got.code != "400" || model.Calls() != 1 {
		t.Errorf("%+v, %d model calls", got, model.Calls())
	}
}

// A crowd that asks again for what has long ended is answered, and does not keep
// others from the log.
func TestCrowdAsksAgain(t *testing.T) { // A8, A30
	w := newWorld(t)
	n := w.node(agents(echo(), nil))
	const turns, crowd = 30, 200
	for i := range turns {
		w.say(n.Client(), "assistant/a", fmt.Sprint("id", i), "hello")
	}
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			got, err := w.ask(n.Client(), "assistant/a", messages.Input{ID: fmt.Sprint("id", i%turns), Content: messages.TextContent("hello")})
			if err != nil || got.text != "you said hello" {
				t.Errorf("asked again: %+v, %v", got, err)
			}
		})
	}
	w.say(n.Client(), "assistant/b", "u1", "hi")
	all.Wait()
	if got := count(w.events(n.Client(), "assistant/a"), "turn.started"); got != turns {
		t.Errorf("%d turns", got)
	}
}
