package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
)

// hostile are bodies that no agent takes, by what the refusal must say.
var hostile = map[string]struct{ body, code string }{
	"empty":           {"", "bad_input"},
	"large":           {`{"content":"hi","metadata":"` + strings.Repeat("x", 500<<10) + `"}`, "too_large"},
	"binary":          {"\xff\xfe\x00\x01\x02", "bad_input"},
	"deep JSON":       {strings.Repeat(`{"content":`, 5000) + "1" + strings.Repeat("}", 5000), "bad_input"},
	"deep msgpack":    {strings.Repeat("\x81\xa1a", 5000) + "\xc0", "bad_input"},
	"cut msgpack":     {"\x82\xa7content\xa5he", "bad_input"},
	"wrong types":     {`{"content":{"a":1},"id":7}`, "bad_input"},
	"another tenant":  {`{"content":"hi","tenant":"rich"}`, "bad_input"},
	"another agent":   {`{"content":"hi","agent":"assistant/other"}`, "bad_input"},
	"command":         {`{"type":"approve","call":"c1"}`, "unknown_command"},
	"unknown policy":  {`{"content":"hi","policy":"now"}`, "bad_input"},
	"id with newline": {`{"content":"hi","id":"a\nb"}`, "bad_input"},
	"hostile reply":   {`{"content":"hi","reply":"reprise.log.0.default.assistant.b"}`, "forbidden_reply"},
}

// Malformed input at every endpoint: the sender gets an error, or a dead letter is kept, and the
// agent and its neighbour are as before.
func TestMalformedInput(t *testing.T) { // A102
	w := newWorld(t)
	n := w.node()
	c := n.Client()
	w.say(c, "assistant/a", "1", "hello")
	before := len(w.events(c, "assistant/a"))
	for name, h := range hostile {
		if got := w.request("agents.prompt.assistant.default.a", h.body); got.code == "" || got.code == "500" || got.reason == "" || !got.ended {
			t.Errorf("%s: the prompt endpoint says %+v", name, got)
		}
		w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte(h.body)))
	}
	list := w.letters(c, "default", len(hostile))
	seen := map[string]int{}
	for _, l := range list {
		seen[l.Code]++
		if l.Subject != "reprise.in.default.assistant.a" || l.Reason == "" {
			t.Errorf("letter %+v", l)
		}
	}
	want := map[string]int{}
	for _, h := range hostile {
		want[h.code]++
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("letters %v, want %v", seen, want)
	}
	if after := len(w.events(c, "assistant/a")); after != before {
		t.Errorf("the agent has %d events, had %d", after, before)
	}
	w.say(c, "assistant/a", "2", "still there")
	w.say(c, "assistant/b", "1", "so is the neighbour")
}

func TestMisaddressed(t *testing.T) { // A102
	w := newWorld(t)
	n := w.node()
	c := n.Client()
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	wrong := (a.Partition() + 1) % messages.Partitions
	for _, c := range []struct{ subject, body string }{
		{"reprise.in.assistant.a", "no tenant"},
		{"reprise.in.default.assistant.a.b", "too many"},
		{"reprise.ctl.assistant", `{"type":"abort"}`},
		{"reprise.in.default.nobody.a", "unknown kind"},
		{"reprise.in.default.assistant.sch\u00f6n", "bad token"},
		{"reprise.inq." + wrong.String() + ".in.default.assistant.a", "wrong partition"},
		{"reprise.inq.5.in.x", "cut"},
		{"reprise.ctl.default.assistant.a", `{"type":"dance"}`},
		{"reprise.ctl.default.assistant.a", `abort`},
		{"reprise.ctl.default.assistant.a", `{"type":"input","content":"hi"}`},
		{"reprise.ctl.default.assistant.a", `{"type":"set_state","patch":[1]}`},
		{"reprise.ctl.default.assistant.a", `{"type":"decide","call":"c","outcome":"maybe"}`},
		{"reprise.ctl.default.assistant.ghost", `{"type":"abort"}`},
	} {
		w.ok(w.nc.Publish(c.subject, []byte(c.body)))
	}
	list := w.letters(c, "default", 13)
	reasons := map[string]string{}
	for _, l := range list {
		reasons[l.Subject+" "+l.Body] = l.Code
		if l.Reason == "" {
			t.Errorf("no reason: %+v", l)
		}
	}
	for subject, code := range map[string]string{
		"reprise.in.assistant.a no tenant":                                                           "bad_address",
		"reprise.in.default.assistant.a.b too many":                                                  "bad_address",
		"reprise.ctl.assistant {\"type\":\"abort\"}":                                                 "bad_address",
		"reprise.in.default.assistant.sch\u00f6n bad token":                                          "bad_address",
		"reprise.inq.5.in.x cut":                                                                     "bad_address",
		"reprise.in.default.nobody.a unknown kind":                                                   "unknown_kind",
		"reprise.inq." + wrong.String() + ".in.default.assistant.a wrong partition":                  "bad_address",
		"reprise.ctl.default.assistant.a {\"type\":\"dance\"}":                                       "unknown_command",
		"reprise.ctl.default.assistant.a abort":                                                      "bad_input",
		"reprise.ctl.default.assistant.a {\"type\":\"input\",\"content\":\"hi\"}":                    "unknown_command",
		"reprise.ctl.default.assistant.ghost {\"type\":\"abort\"}":                                   "not_found",
		"reprise.ctl.default.assistant.a {\"type\":\"set_state\",\"patch\":[1]}":                     "bad_input",
		"reprise.ctl.default.assistant.a {\"type\":\"decide\",\"call\":\"c\",\"outcome\":\"maybe\"}": "bad_input",
	} {
		if reasons[subject] != code {
			t.Errorf("%s: %q, want %q", subject, reasons[subject], code)
		}
	}
	if len(list) != 13 || t.Failed() {
		t.Fatalf("%d letters: %v", len(list), reasons)
	}
	w.say(c, "assistant/a", "1", "hello")
}

// TestNoSuchPartition holds that a message for a partition that does not exist is not
// acknowledged: it would neither be applied nor refused.
func TestNoSuchPartition(t *testing.T) {
	w := newWorld(t)
	w.node()
	for _, subject := range []string{
		"reprise.inq.64.in.default.assistant.a", "reprise.inq.99.in.default.assistant.a", "reprise.inq.05.in.default.assistant.a",
		"reprise.inq.zz", "reprise.inq.5", "reprise.inq.-1.in.x",
	} {
		if ack, err := w.js.Publish(w.ctx, subject, []byte("hi")); !errors.Is(err, jetstream.ErrNoStreamResponse) {
			t.Errorf("%s: %+v, %v", subject, ack, err)
		}
	}
}

// Headers that mean something to the server must not make a dead letter one that can never be
// stored, which would stop its partition.
func TestHostileHeaders(t *testing.T) { // A102
	w := newWorld(t)
	c := w.node().Client()
	stream, err := w.js.Stream(w.ctx, "REPRISE_IN")
	w.ok(err)
	info, err := stream.Info(w.ctx)
	w.ok(err)
	send := func(data string, header ...string) {
		msg := &nats.Msg{Subject: "reprise.in.default.assistant.a", Data: []byte(data), Header: nats.Header{}}
		for i := 0; i < len(header); i += 2 {
			msg.Header.Add(header[i], header[i+1])
		}
		_, err := w.js.PublishMsg(w.ctx, msg)
		w.ok(err)
	}
	send("\xff", "Nats-Expected-Stream", "REPRISE_IN", "Nats-Msg-Id", "first", "X-Mine", "kept")
	send("\xff", "Nats-Expected-Last-Sequence", fmt.Sprint(info.State.LastSeq+1))
	send(strings.Repeat("\xff", 900<<10), "X-Large", strings.Repeat("y", 60<<10))
	send("fine", messages.HeaderID, "ok")
	list := w.letters(c, "default", 3)
	if len(list) != 3 || list[0].Headers.Get("X-Mine") != "kept" || list[0].Headers.Get(messages.HeaderID) != "first" {
		t.Errorf("letters %v", list)
	}
	w.until(c, "assistant/a", ofType("turn.completed"))
}

// No endpoint answers on a subject that is not the caller's to write to.
func TestHostileReplySubjects(t *testing.T) { // A104
	w := newWorld(t)
	n := w.node()
	c := n.Client()
	w.say(c, "assistant/a", "1", "hello")
	p := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}.Partition().String()
	targets := []string{
		"reprise.log." + p + ".default.assistant.a", "reprise.in.default.assistant.victim", "reprise.ctl.default.assistant.a",
		"reprise.dlq.default.assistant.a", "agents.prompt.assistant.default.victim", "$JS.API.STREAM.PURGE.REPRISE_IN",
		"_actor.reprise.own." + p, "reprise.q.default.assistant.a",
	}
	witness, err := w.nc.SubscribeSync(">")
	w.ok(err)
	sent := 0
	for _, reply := range targets {
		for _, endpoint := range []struct{ subject, body string }{
			{"agents.prompt.assistant.default.a", "hi"}, {"agents.prompt.nobody.default.a", "hi"}, {"agents.status.assistant.default.a", ""},
			{"reprise.q.default.assistant.a", `{"view":"events"}`}, {"reprise.q.default.assistant.a", "}"}, {"reprise.q.default", `{"view":"agents"}`},
			{"$SRV.INFO.agents", ""}, {"$SRV.PING", ""}, {"$SRV.STATS.agents", ""},
			{"_actor.reprise.ping." + n.ID(), ""}, {"_actor.reprise.own." + p, ""},
		} {
			w.ok(w.nc.PublishRequest(endpoint.subject, reply, []byte(endpoint.body)))
			sent++
		}
		for _, family := range []string{"in", "ctl"} {
			msg := nats.NewMsg("reprise." + family + ".default.assistant.a")
			msg.Data = []byte(`{"type":"interrupt"}`)
			if family == "in" {
				msg.Data = []byte("hi")
			}
			msg.Header.Set(messages.HeaderReply, reply)
			w.ok(w.nc.PublishMsg(msg))
		}
	}
	list := w.letters(c, "default", 2*len(targets))
	for _, l := range list {
		if l.Code != "forbidden_reply" {
			t.Errorf("letter %+v", l)
		}
	}
	w.say(c, "assistant/a", "2", "all endpoints have been through their queues")
	got := map[string]int{}
	for {
		msg, err := witness.NextMsg(1)
		if err != nil {
			break
		}
		for _, target := range targets {
			if msg.Subject == target && msg.Reply == "" && len(msg.Header) == 0 {
				got[target]++
			}
		}
	}
	if len(got) > 0 {
		t.Errorf("written to %v", got)
	}
	if n, subjects := w.foreign("reprise"); n != 0 {
		t.Errorf("%d foreign messages on %v", n, subjects)
	}
	if turns := count(w.events(c, "assistant/a"), "turn.started"); turns != 2 {
		t.Errorf("%d turns", turns)
	}
	if got := w.request("reprise.q.default.assistant.victim", `{"view":"show"}`); got.code != "404" {
		t.Errorf("the victim exists: %+v", got)
	}
}

// What comes over the wire must not break a query either.
func TestMalformedQueries(t *testing.T) { // A102
	w := newWorld(t)
	c := w.node(func(cfg *cluster.Config) { cfg.Root = "mine" }).Client()
	w.say(c, "assistant/a", "1", "hello")
	for _, q := range []struct{ subject, body, code string }{
		{"mine.q.default.assistant.a", "", "400"}, {"mine.q.default.assistant.a", "}{", "400"}, {"mine.q.default.assistant.a", `{"view":"secrets"}`, "400"},
		{"mine.q.default.assistant.a", `{"view":"events","limit":-1}`, "400"}, {"mine.q.default.assistant.a", `{"view":"events","from":"x"}`, "400"},
		{"mine.q.default.assistant.a", strings.Repeat("[", 100_000), "400"}, {"mine.q.default.assistant.sch\u00f6n", `{"view":"show"}`, "400"},
		{"mine.q.default.assistant.a", `{"view":"history","at":99}`, "404"}, {"mine.q.default.assistant.ghost", `{"view":"state"}`, "404"},
		{"mine.q.default", `{"view":"show"}`, "400"}, {"mine.q.default.assistant.a", `{"view":"events","from":99}`, "404"},
	} {
		if got := w.request(q.subject, q.body); got.code != q.code || got.reason == "" || !got.ended {
			t.Errorf("%s %.40q: %s %s", q.subject, q.body, got.code, got.reason)
		}
	}
}
