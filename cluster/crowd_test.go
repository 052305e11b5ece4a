package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// Agents of a partition that owe work are read together: they do not cost a
// request each. Each is fenced and continues in one frame.
func TestCrowdIsTakenOver(t *testing.T) {
	embeddedtest.Long(t, "a takeover paced by the clock")
	const crowd = 150 // more than are looked up at once
	w := newWorld(t)
	w.ok(w.node().Close()) // later epochs are higher than 1
	var all []messages.AgentID
	for i := 0; len(all) < crowd; i++ {
		if a := (messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("crowd", i)}); len(all) == 0 || a.Partition() == all[0].Partition() {
			all = append(all, a)
		}
	}
	log, e := w.lateFrame(all[0])
	for _, a := range all {
		f := *e.Frame
		f.ID, f.Events = messages.FrameID(ulid.Make().String()), append([]messages.Event{messages.AgentCreated{Agent: a.Full()}}, f.Events[1:]...)
		b, err := messages.EncodeFrame(a, &f)
		w.ok(err)
		_, err = log.Append(w.ctx, eventlog.Entry{Agent: a, Frame: &f, Bytes: b, Summary: e.Summary})
		w.ok(err)
	}
	var asked atomic.Int32
	_, err := w.nc.Subscribe("$JS.API.STREAM.>", func(m *nats.Msg) {
		if strings.Contains(string(m.Data), ".crowd") {
			asked.Add(1)
		}
	})
	w.ok(err)
	written, err := w.nc.SubscribeSync(fmt.Sprintf("reprise.log.%s.default.assistant.>", all[0].Partition()))
	w.ok(err)
	w.ok(w.nc.Flush())

	n := w.node(agents(scripted.Func(func(messagesRequest) scripted.Step { return scripted.Say("finished") }), nil))
	for done := 0; done < crowd; {
		m, err := written.NextMsgWithContext(w.ctx)
		w.ok(err)
		if strings.HasSuffix(m.Header.Get("Reprise-Events"), "turn.completed") {
			done++
		}
	}
	if asked := asked.Load(); asked > crowd/10 { // a reader that has waited for long reads by itself
		t.Errorf("%d requests were made for the logs of %d agents", asked, crowd)
	}
	for _, a := range []messages.AgentID{all[0], all[crowd-1]} {
		events := w.events(n.Client(), a.Full())
		i := slices.IndexFunc(events, ofType("agent.activated"))
		if count(events, "agent.activated") != 1 || i < 0 || events[i+1].Type != "model.restarted" || events[i+1].Frame != events[i].Frame {
			t.Errorf("%s: %+v", a, events)
		}
	}
}
