package cluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// The writer of a state that cannot be stored gets an error, at each endpoint, and nothing
// changes, also for a node that starts later.
func TestStateThatCannotBeStored(t *testing.T) { // A60
	w := newWorld(t)
	n := w.node()
	state := func(c *client.Client) (all string) {
		for line, err := range c.Query(w.ctx, "assistant/a", messages.Query{View: "state"}) {
			w.ok(err)
			all += string(line)
		}
		return all
	}
	_, err := n.Client().Do(w.ctx, "assistant/a", messages.SetState{ID: "s1", Patch: []byte(`{"plan":"free"}`)})
	w.ok(err)
	before, events := state(n.Client()), w.events(n.Client(), "assistant/a")
	large := `"` + strings.Repeat("x", messages.MaxBody) + `"`
	for name, patch := range map[string]string{
		"too large": `{"plan":` + large + `}`, "cut": `{"plan":`, "no JSON": `{"plan":paid}`, "no object": `["paid"]`, "binary": "{\"plan\":\"\xff\"}",
	} {
		_, err := n.Client().Do(w.ctx, "assistant/a", messages.SetState{ID: "by the client", Patch: json.RawMessage(patch)})
		if err == nil {
			t.Errorf("%s: the client reports no error", name)
		}
		a := w.told("reprise.ctl.default.assistant.a", `{"type":"set_state","id":"by hand","patch":`+patch+`}`)
		if a.Err == nil || a.Err.Code != messages.BadInput && a.Err.Code != messages.TooLarge {
			t.Errorf("%s: the answer is %+v", name, a)
		}
	}
	if a := w.told("reprise.ctl.default.assistant.a", "\x82\xa4type\xa9set_state\xa5patch\x81\xa4plan\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"); a.Err == nil || a.Err.Code != messages.BadInput {
		t.Errorf("NaN in msgpack: the answer is %+v", a)
	}
	sub, err := w.nc.SubscribeSync(w.nc.NewInbox())
	w.ok(err)
	unchanged := func(when string) {
		t.Helper()
		if got := state(n.Client()); got != before {
			t.Errorf("%s the state is %s, it was %s", when, got, before)
		}
		if got := w.events(n.Client(), "assistant/a"); len(got) != len(events) {
			t.Errorf("%s there are %d events, there were %d", when, len(got), len(events))
		}
	}
	unchanged("after the refusals")
	w.ok(n.Close())
	// What came while no node ran is refused by the next one.
	w.ok(w.nc.PublishMsg(&nats.Msg{Subject: "reprise.ctl.default.assistant.a", Data: []byte(`{"type":"set_state","patch":{"plan":}}`), Header: nats.Header{messages.HeaderReply: {sub.Subject}}}))
	n = w.node()
	reply, err := sub.NextMsgWithContext(w.ctx)
	w.ok(err)
	if !strings.Contains(string(reply.Data), string(messages.BadInput)) {
		t.Errorf("the next node answers %s", reply.Data)
	}
	unchanged("after a restart")
	if a := w.told("reprise.ctl.default.assistant.a", `{"type":"set_state","id":"by hand","patch":{"plan":"paid"}}`); a.Err != nil || a.Duplicate {
		t.Errorf("the id of the refused writes is used up: %+v", a)
	}
	if got := state(n.Client()); !strings.Contains(got, "paid") {
		t.Errorf("the state is %s", got)
	}
}
