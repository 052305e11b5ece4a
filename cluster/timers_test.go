package cluster_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Paused agents whose timers an earlier node wrote down are activated when they
// are due, though no caller asks for them; the list shows how many of their calls
// wait without waking any agent.
func TestTimersAfterRestart(t *testing.T) { // A25
	w := newWorld(t)
	w.ok(w.node().Close())
	soon := time.Now().Add(time.Second)
	w.pausedAgent("never", time.Time{})
	w.pausedAgent("past", time.Now().Add(-time.Hour))
	w.pausedAgent("soon", soon)
	w.pausedAgent("tomorrow", time.Now().Add(24*time.Hour))
	n := w.node()
	w.until(n.Client(), "assistant/past", ofType("agent.activated"))
	woken := w.until(n.Client(), "assistant/soon", ofType("agent.activated"))
	if woken.At.Before(soon) {
		t.Errorf("woken %s too early", soon.Sub(woken.At))
	}
	for _, asleep := range []string{"assistant/never", "assistant/tomorrow"} {
		if events := w.events(n.Client(), asleep); count(events, "agent.activated") > 0 {
			t.Errorf("%s was woken: %+v", asleep, events)
		}
	}
	for line, err := range n.Client().QueryTenant(w.ctx, messages.DefaultTenant, messages.Query{View: "agents"}) {
		w.ok(err)
		var row struct {
			Agent, Phase string
			Waiting      int
		}
		w.ok(json.Unmarshal(line, &row))
		if row.Agent == "assistant/tomorrow" && (row.Waiting != 2 || row.Phase != "paused") {
			t.Errorf("the list tells %s", line)
		}
	}
}

// A call that waits for approval when its node goes is denied by the next one
// when its time is up, though no caller asks; its tool never runs. On a machine so
// slow that the first node lives that long, that one denies it.
func TestApprovalExpiresAfterRestart(t *testing.T) { // A25 A40
	w := newWorld(t)
	var runs atomic.Int32
	pay := tool.New("pay", "", tool.Pause, func(context.Context, struct{}) (string, error) {
		runs.Add(1)
		return "paid", nil
	}).ApproveAlways().ApprovalTimeout(2 * time.Second)
	with := func(d *actors.Definition) { d.Tools = []tool.Tool{pay} }
	n := w.node(agents(scripted.New(scripted.Ask(scripted.Call{Name: "pay", Arguments: "{}"}), scripted.Say("it was not paid")), with))
	w.ok(w.nc.Publish("reprise.in.default.assistant.a", []byte("go")))
	w.until(n.Client(), "assistant/a", ofType("turn.paused"))
	w.ok(n.Close())

	n = w.node(agents(scripted.New(scripted.Say("it was not paid")), with))
	done := w.until(n.Client(), "assistant/a", ofType("turn.completed"))
	events := w.events(n.Client(), "assistant/a")
	for eventType, want := range map[string]int{
		"approval.requested": 1, "approval.denied": 1, "timer.set": 1, "timer.fired": 1, "tool.denied": 1, "tool.started": 0,
	} {
		if got := count(events, eventType); got != want {
			t.Errorf("%d %s, want %d", got, eventType, want)
		}
	}
	if runs.Load() != 0 || done.field("output") != "it was not paid" {
		t.Errorf("%d runs; %s", runs.Load(), done.Data)
	}
	for _, e := range events {
		if e.Type == "approval.denied" && e.field("by") != "timeout" {
			t.Errorf("denied: %s", e.Data)
		}
	}
}

// pausedAgent stores an agent that the owner of epoch 1 left paused, with a
// timer.
func (w *world) pausedAgent(key string, due time.Time) {
	w.t.Helper()
	log, e := w.lateFrame(messages.AgentID{Tenant: "default", Kind: "assistant", Key: key})
	last := len(e.Frame.Events) - 1
	e.Frame.Events[last] = messages.TurnPaused{Turn: "t4", Reason: "approval"} // in place of a model call
	e.Summary = eventlog.Summary{Phase: messages.PhasePaused, Turn: "t4", Due: due, Waiting: 2}
	var err error
	e.Bytes, err = messages.EncodeFrame(e.Agent, e.Frame)
	w.ok(err)
	tail, err := log.Append(w.ctx, e)
	w.ok(err)
	// And a frame that no reply is owed for.
	e.Expect = tail
	e.Frame = &messages.Frame{
		ID: e.Frame.ID + "-2", Epoch: e.Frame.Epoch, First: tail.Last + 1, Prev: tail.Frame, PrevDigest: tail.Digest, Time: tail.Time,
		Events: []messages.Event{messages.CommandNoop{Command: "interrupt"}},
	}
	e.Bytes, err = messages.EncodeFrame(e.Agent, e.Frame)
	w.ok(err)
	_, err = log.Append(w.ctx, e)
	w.ok(err)
}

// An input that is to come later comes when the node that took it is gone, once,
// and not before its time.
func TestScheduledInputAfterRestart(t *testing.T) { // A6 A25
	w := newWorld(t)
	n := w.node()
	for id, in := range map[string]string{"soon": "2s", "later": "1h"} {
		msg := nats.NewMsg("reprise.in.default.assistant." + id)
		msg.Data = []byte("is it there?")
		msg.Header.Set(messages.HeaderIn, in)
		msg.Header.Set(messages.HeaderID, id)
		w.ok(w.nc.PublishMsg(msg))
	}
	var set messages.TimerSet // its time counts from when the input was stored, not from when it was taken
	w.ok(json.Unmarshal(w.until(n.Client(), "assistant/soon", ofType("timer.set")).Data, &set))
	w.until(n.Client(), "assistant/later", ofType("timer.set"))
	w.ok(n.Close())

	n = w.node()
	done := w.until(n.Client(), "assistant/soon", ofType("turn.completed"))
	if set.At.IsZero() || done.At.Before(set.At) || done.field("output") != "you said is it there?" {
		t.Errorf("at %s, due %s: %s", done.At, set.At, done.Data)
	}
	events := w.events(n.Client(), "assistant/soon")
	if count(events, "timer.fired") != 1 || count(events, "input.accepted") != 1 {
		t.Errorf("it came otherwise than once: %+v", events)
	}
	for line, err := range n.Client().Timers(w.ctx, "assistant/later") {
		if w.ok(err); line.Timer != "later" || line.Text != "is it there?" || line.Next.IsZero() {
			t.Errorf("waits: %+v", line)
		}
	}
	_, err := n.Client().Do(w.ctx, "assistant/later", messages.Cancel{Timer: "later"})
	w.ok(err)
	for line := range n.Client().Timers(w.ctx, "assistant/later") {
		t.Errorf("cancelled, and waits: %+v", line)
	}
}

// A prompt that is to come later is acknowledged once it is in the log; nothing
// follows, for nothing is answered yet.
func TestPromptForLater(t *testing.T) { // A6
	w := newWorld(t)
	n := w.node()
	for _, tc := range []struct{ body, header, value, want string }{
		{"come back", messages.HeaderIn, "1h", `{"type":"status","data":"ack"}`},
		{`{"prompt":"Good morning","reprise":{"cron":"0 9 * * 1-5","tz":"Europe/Berlin","name":"morning"}}`, "", "", `{"type":"status","data":"ack"}`},
		{"come back", messages.HeaderCron, "0 25 * * *", ""},
	} {
		replies, err := w.nc.SubscribeSync(w.nc.NewInbox())
		w.ok(err)
		msg := nats.NewMsg("agents.prompt.assistant.default.a")
		msg.Reply, msg.Data = replies.Subject, []byte(tc.body)
		if tc.header != "" {
			msg.Header.Set(tc.header, tc.value)
		}
		w.ok(w.nc.PublishMsg(msg))
		first, err := replies.NextMsgWithContext(w.ctx)
		w.ok(err)
		if string(first.Data) != tc.want {
			t.Errorf("%s: told %s", tc.body, first.Data)
		}
		if tc.want == "" {
			if why := first.Header.Get("Nats-Service-Error"); !strings.Contains(why, "field 2, the hour") {
				t.Errorf("refused: %s", why)
			}
			continue
		}
		if last, err := replies.NextMsgWithContext(w.ctx); err != nil || len(last.Data) != 0 {
			t.Errorf("%s: %v, %v", tc.body, last, err)
		}
	}
	var timers []string
	for line, err := range n.Client().Timers(w.ctx, "assistant/a") {
		w.ok(err)
		timers = append(timers, line.Text+" "+line.Cron)
	}
	slices.Sort(timers)
	if !slices.Equal(timers, []string{"Good morning 0 9 * * 1-5", "come back "}) {
		t.Errorf("timers: %q", timers)
	}
}
