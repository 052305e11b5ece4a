package cluster_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

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
	nc, err := natslog.Connect(w.url, unhurried)
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
	return log, eventlog.Entry{Agent: a, Frame: f, Bytes: b, Summary: eventlog.Summary{Phase: messages.PhaseRunning, Turn: "t4", Open: true}}
}

// The steps of a turn are counted across a change of owner.
func TestStepLimitAcrossOwners(t *testing.T) { // A17
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	noop := tool.New("noop", "", tool.ReadOnly, func(context.Context, struct{}) (string, error) { return "ok", nil })
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
	_, err := n.Client().Do(w.ctx, "assistant/a", messages.Resume{LimitOverrides: messages.LimitOverrides{MaxSteps: 6}})
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
