package cluster_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

func TestDiscovery(t *testing.T) { // A100
	w := newWorld(t)
	beats, err := w.nc.SubscribeSync("agents.hb.>")
	w.ok(err)
	w.ok(w.nc.Flush())
	n := w.node()
	hb, err := beats.NextMsgWithContext(w.ctx)
	w.ok(err)
	var beat struct {
		Agent, Owner string
		InstanceID   string `json:"instance_id"`
		IntervalS    int    `json:"interval_s"`
	}
	w.ok(json.Unmarshal(hb.Data, &beat))
	if hb.Subject != "agents.hb.assistant.default.main" || beat.Agent != "assistant" || beat.Owner != "default" || beat.InstanceID == "" || beat.IntervalS != 30 {
		t.Errorf("heartbeat %s %s", hb.Subject, hb.Data)
	}
	for _, subject := range []string{"$SRV.INFO.agents", "$SRV.INFO", "$SRV.INFO.AGENTS", "$SRV.INFO.agents." + n.ID() + "-assistant"} {
		msg, err := w.nc.RequestWithContext(w.ctx, subject, nil)
		w.ok(err)
		var info micro.Info
		w.ok(json.Unmarshal(msg.Data, &info))
		prompt, status := info.Endpoints[0], info.Endpoints[1]
		if info.Name != "agents" || info.Type != micro.InfoResponseType || info.Metadata["agent"] != "assistant" || info.Metadata["owner"] != "default" || info.Metadata["protocol_version"] != "0.3" ||
			prompt.Name != "prompt" || prompt.Subject != "agents.prompt.assistant.default.main" || prompt.QueueGroup != "agents" || prompt.Metadata["max_payload"] != "1023KB" || prompt.Metadata["attachments_ok"] != "false" ||
			status.Name != "status" || status.Subject != "agents.status.assistant.default.main" {
			t.Errorf("%s: %s", subject, msg.Data)
		}
		if got := w.request(prompt.Subject, "hello"); got.text() != "you said hello" || !got.ended {
			t.Errorf("the discovered subject answers %+v", got)
		}
	}
	for subject, want := range map[string]string{"$SRV.PING.agents": micro.PingResponseType, "$SRV.PING": micro.PingResponseType, "$SRV.STATS.agents": micro.StatsResponseType} {
		msg, err := w.nc.RequestWithContext(w.ctx, subject, nil)
		w.ok(err)
		if !strings.Contains(string(msg.Data), want) {
			t.Errorf("%s: %s", subject, msg.Data)
		}
	}
	w.eventually("the status shows the phase", func() bool { // heads follow the log
		got, err := w.nc.RequestWithContext(w.ctx, "agents.status.assistant.default.main", nil)
		w.ok(err)
		w.ok(json.Unmarshal(got.Data, &beat))
		return beat.Agent == "assistant" && strings.Contains(string(got.Data), `"phase":"idle"`)
	})
}

func TestPromptProtocol(t *testing.T) { // A100 A101
	w := newWorld(t)
	w.node(agents(scripted.Func(func(providers.Request) scripted.Step { return scripted.Step{Text: "one two three", Pieces: 3} }), nil))
	for _, body := range []string{"hello", `{"prompt":"hello"}`, `{"prompt":"hello","unknown":1,"attachments":[]}`, `{"prompt":"hello","id":7,"policy":"any","reply":"reprise.in.x","options":1}`, `{"type":"input","content":"hello"}`, `{"content":[{"type":"text","text":"hello"}]}`} {
		got := w.request("agents.prompt.assistant.default.some-key", body)
		if len(got.chunks) == 0 || got.chunks[0] != `{"type":"status","data":"ack"}` || !got.ended || got.code != "" || got.text() != "one two three" {
			t.Fatalf("%s: %+v", body, got)
		}
		responses := 0
		for _, typ := range got.types {
			if typ == "response" {
				responses++
			}
		}
		if responses < 3 || !slices.Contains(got.types, "reprise.events") {
			t.Errorf("%s: chunks %v", body, got.types)
		}
	}
	for _, c := range []struct{ subject, body, code string }{
		{"agents.prompt.assistant.default.a", "", "400"},
		{"agents.prompt.assistant.default.a", `{"prompt":""}`, "400"},
		{"agents.prompt.assistant.default.a", `{"prompt":"see","attachments":[{"filename":"a.png","content":"AA=="}]}`, "400"},
		{"agents.prompt.assistant.default.a", `{"prompt":"see","attachments":"x"}`, "400"},
		{"agents.prompt.assistant.default.a", `{"prompt":"hello","reprise":{"id":7}}`, "400"},
		{"agents.prompt.nobody.default.a", "hello", "404"},
		{"agents.prompt.assistant.default.sch\u00f6n", "hello", "400"},
		{"agents.status.nobody.default.a", "", "404"},
	} {
		if got := w.request(c.subject, c.body); got.code != c.code || got.reason == "" || !got.ended {
			t.Errorf("%s %q: %+v", c.subject, c.body, got)
		}
	}
}

// Order is kept: the ack comes once the acceptance is in the log, not before.
func TestAckAfterAcceptance(t *testing.T) { // A100
	w := newWorld(t)
	gate := scripted.NewGate()
	n := w.node(agents(scripted.New(scripted.Held(gate, scripted.Say("later"))), nil))
	sub, err := w.nc.SubscribeSync(w.nc.NewInbox())
	w.ok(err)
	w.ok(w.nc.PublishRequest("agents.prompt.assistant.default.k", sub.Subject, []byte("hello")))
	ack, err := sub.NextMsgWithContext(w.ctx)
	w.ok(err)
	if string(ack.Data) != `{"type":"status","data":"ack"}` || count(w.events(n.Client(), "assistant/k"), "input.accepted") != 1 {
		t.Errorf("%s", ack.Data)
	}
	gate.Release()
	w.until(n.Client(), "assistant/k", ofType("turn.completed"))
}

func TestPlainPublish(t *testing.T) { // A101
	w := newWorld(t)
	n := w.node()
	for i, body := range []string{"hello", `{"content":"hello"}`, "\x81\xa7content\xa5hello"} {
		w.ok(w.nc.Publish("reprise.in.default.assistant.plain", []byte(body)))
		turns := 0
		w.until(n.Client(), "assistant/plain", func(e event) bool {
			if e.Type == "turn.completed" {
				turns++
			}
			return turns == i+1
		})
	}
	events := w.events(n.Client(), "assistant/plain")
	for _, e := range events {
		if e.Type == "input.accepted" && !strings.HasPrefix(e.field("input"), "in:") || e.Type == "turn.completed" && e.field("output") != "you said hello" {
			t.Errorf("%s %s", e.Type, e.Data)
		}
	}
	// Commands: what `nats req reprise.ctl…` gets is JetStream's word; the answer goes to Reprise-Reply.
	reply, err := w.nc.SubscribeSync("my.replies")
	w.ok(err)
	msg := nats.NewMsg("reprise.ctl.default.assistant.plain")
	msg.Data = []byte(`{"type":"interrupt","reason":"enough"}`)
	msg.Header.Set(messages.HeaderReply, "my.replies")
	w.ok(w.nc.PublishMsg(msg))
	got, err := reply.NextMsgWithContext(w.ctx)
	w.ok(err)
	if !strings.Contains(string(got.Data), "nothing to interrupt") || !strings.Contains(string(got.Data), `"type":"applied"`) {
		t.Errorf("answer %s", got.Data)
	}
	if got := w.request("reprise.q.default.assistant.plain", `{"view":"show"}`); !strings.Contains(got.chunks[0], `"phase":"idle"`) {
		t.Errorf("show: %+v", got)
	}
}
