package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

func TestDeltasBeforeTheEnd(t *testing.T) { // A51
	w := newWorld(t)
	gate := scripted.NewGate()
	model := scripted.New(scripted.Step{Text: "first second", Pieces: 2, Gate: gate, After: 1})
	c := w.node(agents(model, nil)).Client()
	live, err := w.nc.SubscribeSync("reprise.live.default.assistant.a")
	w.ok(err)
	w.ok(w.nc.Flush())
	text := ""
	for e, err := range c.Ask(w.ctx, "assistant/a", "go") {
		w.ok(err)
		if e.Type != "delta" {
			continue
		}
		if text += e.Text; text == "first " {
			for published := ""; !strings.Contains(published, `"text":"first "`); {
				msg, err := live.NextMsgWithContext(w.ctx)
				w.ok(err)
				published = string(msg.Data)
			}
			if got := w.events(c, "assistant/a"); count(got, "model.completed") != 0 {
				t.Error("the call had ended")
			}
			gate.Release()
		}
	}
	if text != "first second" {
		t.Errorf("streamed %q", text)
	}
	for _, e := range w.events(c, "assistant/a") {
		if strings.Contains(string(e.Data), `"first "`) {
			t.Errorf("a delta is in the log: %s %s", e.Type, e.Data)
		}
	}
}

// One that asks again in the middle of a call gets its text once and whole.
func TestAskedAgainInTheMiddle(t *testing.T) { // A8 A51
	w := newWorld(t)
	gate := scripted.NewGate()
	model := scripted.New(scripted.Step{Text: "first second", Pieces: 2, Gate: gate, After: 1})
	c := w.node(agents(model, nil)).Client()
	_, err := c.Send(w.ctx, "assistant/a", input("1", "go"))
	w.ok(err)
	<-gate.Reached()
	text := ""
	for e, err := range c.AskFacts(w.ctx, "assistant/a", input("1", "go")) {
		w.ok(err)
		if e.Type == "model.requested" {
			gate.Release()
		}
		if e.Type == "delta" {
			text += e.Text
		}
	}
	if text != "first second" {
		t.Errorf("streamed %q", text)
	}
}

// Pages of any size, read while the agent writes, join without gap or repeat.
func TestPagesAndFollow(t *testing.T) { // A85
	w := newWorld(t)
	c := w.node().Client()
	w.say(c, "assistant/a", "0", "hello")
	const turns = 12
	go func() {
		for i := 1; i < turns; i++ {
			for range c.AskFacts(w.ctx, "assistant/a", input(fmt.Sprint(i), "hello")) {
			}
		}
	}()
	for _, limit := range []string{"1", "3", "7"} {
		next, done := messages.EventNumber(1), 0
		for done < turns {
			body := fmt.Sprintf(`{"view":"events","follow":true,"limit":%s,"from":%d}`, limit, next)
			sub, err := w.nc.SubscribeSync(w.nc.NewInbox())
			w.ok(err)
			w.ok(w.nc.PublishRequest("reprise.q.default.assistant.a", sub.Subject, []byte(body)))
			for done < turns {
				msg, err := sub.NextMsgWithContext(w.ctx)
				w.ok(err)
				if len(msg.Data) == 0 {
					if got := msg.Header.Get(messages.HeaderNext); got != fmt.Sprint(next) {
						t.Fatalf("limit %s: the next page begins with %q, want %d", limit, got, next)
					}
					break
				}
				for line := range strings.Lines(string(msg.Data)) {
					var e event
					w.ok(json.Unmarshal([]byte(line), &e))
					if e.N != next {
						t.Fatalf("limit %s: event %d came, want %d", limit, e.N, next)
					}
					next++
					if e.Type == "turn.completed" {
						done++
					}
				}
			}
			w.ok(sub.Unsubscribe())
		}
	}
	all := w.events(c, "assistant/a")
	from := messages.EventNumber(17)
	for line, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: "events", From: from, Limit: 40}) {
		w.ok(err)
		var e event
		w.ok(json.Unmarshal(line, &e))
		if e.N != from || string(e.Data) != string(all[from-1].Data) {
			t.Fatalf("event %d, want %d", e.N, from)
		}
		from++
	}
	if from != 57 {
		t.Errorf("stopped before %d", from)
	}
	if got := w.request("reprise.q.default.assistant.a", fmt.Sprintf(`{"view":"events","from":%d}`, len(all)+1)); got.code != "" || len(got.chunks) != 0 || !got.ended {
		t.Errorf("nothing new: %+v", got)
	}
}

func TestViewsAsOf(t *testing.T) { // A80
	w := newWorld(t)
	c := w.node().Client()
	lines := func(q messages.Query) (all []string) {
		for line, err := range c.Query(w.ctx, "assistant/a", q) {
			w.ok(err)
			all = append(all, string(line))
		}
		return all
	}
	shape := func(line string) string { // what does not depend on when it is asked
		var s struct{ Phase, Turn string }
		w.ok(json.Unmarshal([]byte(line), &s))
		return s.Phase + s.Turn
	}
	type view struct{ history, state, show string }
	now := func(at messages.EventNumber) view {
		return view{fmt.Sprint(lines(messages.Query{View: "history", At: at})), fmt.Sprint(lines(messages.Query{View: "state", At: at})), shape(lines(messages.Query{View: "show", At: at})[0])}
	}
	then := map[messages.EventNumber]view{}
	for i := range 4 {
		w.say(c, "assistant/a", fmt.Sprint(i), fmt.Sprintf("say %d", i))
		a, err := c.Do(w.ctx, "assistant/a", messages.SetState{Patch: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
		w.ok(err)
		then[a.N] = now(0)
	}
	for n, was := range then {
		if got := now(n); got != was {
			t.Errorf("as of %d: %v, was %v", n, got, was)
		}
	}
	whole := lines(messages.Query{View: "history"})
	for _, limit := range []int{1, 3, 5} {
		var paged []string
		for from := messages.EventNumber(1); len(paged) < len(whole); from = messages.EventNumber(len(paged) + 1) {
			paged = append(paged, lines(messages.Query{View: "history", Limit: limit, From: from})...)
		}
		if fmt.Sprint(paged) != fmt.Sprint(whole) {
			t.Errorf("history by %d: %v", limit, paged)
		}
	}
	if replay := lines(messages.Query{View: "replay", From: 3, Limit: 2}); len(replay) != 2 || !strings.Contains(replay[0], `"n":3`) {
		t.Errorf("replay %v", replay)
	}
}

// A line larger than a message is joined by the reader.
func TestLargeLines(t *testing.T) { // A80
	w := newWorld(t)
	large := strings.Repeat("<&>", 50<<10) // JSON writes six bytes for each
	c := w.node(agents(scripted.New(scripted.Say("long")), nil)).Client()
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(large)))
	w.until(c, "assistant/a", ofType("turn.completed"))
	for _, view := range []string{"events", "history", "replay"} {
		size := 0
		for line, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: view}) {
			w.ok(err)
			if !json.Valid(line) {
				t.Errorf("%s: a line of %d bytes is no JSON", view, len(line))
			}
			size += len(line)
		}
		if size < 6*len(large) {
			t.Errorf("%s: %d bytes", view, size)
		}
	}
}

func TestReplySubjects(t *testing.T) {
	w := newWorld(t)
	c := w.node().Client()
	replies, err := w.nc.SubscribeSync("my.app.replies")
	w.ok(err)
	w.ok(w.nc.Flush()) // the input goes over another connection
	in := input("order-7", "hello")
	in.Reply = "my.app.replies"
	_, err = c.Send(w.ctx, "assistant/a", in)
	w.ok(err)
	done := w.until(c, "assistant/a", ofType("turn.completed"))
	for _, want := range []struct {
		n         messages.EventNumber
		eventType string
	}{{3, "input.accepted"}, {done.N, "turn.completed"}} {
		msg, err := replies.NextMsgWithContext(w.ctx)
		w.ok(err)
		var got struct {
			ID, Agent, Input, Type string
			N                      messages.EventNumber
		}
		w.ok(json.Unmarshal(msg.Data, &got))
		if got.ID != fmt.Sprintf("assistant/a.%d", want.n) || got.N != want.n || got.Agent != "assistant/a" || got.Input != "order-7" || got.Type != want.eventType {
			t.Errorf("reply %s, want %+v", msg.Data, want)
		}
	}
	in.ID, in.Policy = "expired", messages.PolicyReject
	in.Content = messages.TextContent(" ")
	_, err = c.Send(w.ctx, "assistant/a", in)
	w.ok(err)
	if l := w.letters(c, "default", 1); l[0].Code != "bad_input" {
		t.Errorf("letter %+v", l)
	}
}

// A page that fills up while it follows names the event that it had no room for.
func TestPageFillsWhileFollowing(t *testing.T) { // A85
	w := newWorld(t)
	c := w.node().Client()
	last := w.say(c, "assistant/a", "1", "hello").end.N
	sub, err := w.nc.SubscribeSync(w.nc.NewInbox())
	w.ok(err)
	w.ok(w.nc.PublishRequest("reprise.q.default.assistant.a", sub.Subject, fmt.Appendf(nil, `{"view":"events","follow":true,"limit":3,"from":%d}`, last)))
	_, err = sub.NextMsgWithContext(w.ctx) // the past
	w.ok(err)
	w.say(c, "assistant/a", "2", "hello")
	for lines := 1; ; {
		msg, err := sub.NextMsgWithContext(w.ctx)
		w.ok(err)
		if len(msg.Data) > 0 {
			lines += strings.Count(string(msg.Data), "\n")
			continue
		}
		if got := msg.Header.Get(messages.HeaderNext); lines != 3 || got != fmt.Sprint(last+3) {
			t.Errorf("%d lines from %d; the next page begins with %s", lines, last, got)
		}
		return
	}
}

// A follower continues with the next event when its agent's owner is replaced.
func TestFollowerOutlivesOwner(t *testing.T) { // A85
	w := newWorld(t)
	first := w.node()
	c := client.New(w.nc, "")
	w.say(c, "assistant/a", "1", "hello")
	lines := make(chan event)
	go func() {
		defer close(lines)
		for line, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: "events", Follow: true}) {
			var e event
			if err != nil || json.Unmarshal(line, &e) != nil {
				return
			}
			lines <- e
		}
	}()
	next := messages.EventNumber(1)
	turns := func(n int) {
		t.Helper()
		for done := 0; done < n; next++ {
			e := <-lines
			if e.N != next {
				t.Fatalf("event %d came, want %d", e.N, next)
			}
			if e.Type == "turn.completed" {
				done++
			}
		}
	}
	turns(1)
	w.ok(first.Close())
	w.node()
	w.say(c, "assistant/a", "2", "hello")
	turns(1)
}

// A follower whose connection breaks misses nothing of what is written meanwhile.
func TestFollowerOutlivesConnection(t *testing.T) { // A85
	w := newWorld(t)
	writer := w.node().Client()
	wi := &wire{}
	nc, err := nats.Connect(w.url, unhurried, nats.SetCustomDialer(wi), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	w.ok(err)
	defer nc.Close()
	w.say(writer, "assistant/a", "0", "hello")
	const turns = 5
	next, done := messages.EventNumber(1), 0
	for line, err := range client.New(nc, "").Query(w.ctx, "assistant/a", messages.Query{View: "events", Follow: true}) {
		w.ok(err)
		var e event
		w.ok(json.Unmarshal(line, &e))
		if e.N != next {
			t.Fatalf("event %d came, want %d", e.N, next)
		}
		if next++; e.Type != "turn.completed" {
			continue
		}
		if done++; done == turns {
			break
		}
		wi.cut()
		w.say(writer, "assistant/a", fmt.Sprint(done), "hello")
		wi.heal()
	}
}

// A caller learns at once that the connection was closed permanently.
func TestStreamOfAClosedConnection(t *testing.T) {
	w := newWorld(t)
	never := scripted.NewGate()
	w.node(agents(scripted.New(scripted.Held(never, scripted.Say("never"))), nil))
	c := client.New(w.connect(), "")
	var last error
	for e, err := range c.AskFacts(w.ctx, "assistant/a", input("1", "hello")) {
		if last = err; e.Type == "model.requested" {
			c.Close()
		}
	}
	if !errors.Is(last, client.ErrLost) || !errors.Is(last, nats.ErrConnectionClosed) || strings.Contains(last.Error(), "nothing was heard") {
		t.Errorf("told %v", last)
	}
}
