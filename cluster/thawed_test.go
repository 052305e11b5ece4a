package cluster_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// A node is frozen when it has written that a tool with OnUnknown Pause begins, and before it
// calls it. Its key is taken away; the next owner asks a person, who has the call made
// there. Thawed, the node does not make it, too.
func TestFrozenBeforeTool(t *testing.T) { // A92 A22
	embeddedtest.Long(t, "several nodes")
	w := newWorld(t)
	var runs, elsewhere atomic.Int32
	with := func(runs *atomic.Int32, gate *scripted.Gate, made chan<- error) func(*actors.Definition) {
		return func(d *actors.Definition) {
			d.Tools = []tool.Tool{tool.New("once", "", tool.Pause, func(context.Context, struct{}) (string, error) {
				runs.Add(1)
				return "ran", nil
			})}
			d.Hooks = []actors.Hook{{Name: "gate", AroundTool: func(ctx context.Context, _ actors.HookInfo, _ actors.HookedCall, next func(context.Context) (string, error)) (string, error) {
				_ = gate.Wait(context.WithoutCancel(ctx))
				output, err := next(context.WithoutCancel(ctx))
				made <- err
				return output, err
			}}}
		}
	}
	gate, wi, made := scripted.NewGate(), &wire{}, make(chan error, 10)
	asks := scripted.Ask(scripted.Call{Name: "once", Arguments: "{}"})
	first := w.node(agents(scripted.New(asks), with(&runs, gate, made)), over(wi))
	second := w.node(agents(scripted.New(scripted.Say("done")), with(&elsewhere, nil, make(chan error, 10))))
	w.even(first, second)
	agent := w.agentOf(first)
	_, err := second.Client().Send(w.ctx, agent, input("1", "go"))
	w.ok(err)
	<-gate.Reached()
	wi.freeze()
	t.Cleanup(wi.thaw)
	members, err := w.js.KeyValue(w.ctx, "reprise_members")
	w.ok(err)
	w.ok(members.Delete(w.ctx, "m."+first.ID()))
	w.owns(second)
	unknown, _ := w.written(agent, messages.ToolUnknown{}).(messages.ToolUnknown)
	_, err = second.Client().Do(w.ctx, agent, messages.Decide{ID: "again", Call: unknown.Call, Outcome: messages.OutcomeRetry})
	w.ok(err)
	w.written(agent, messages.TurnCompleted{})
	w.eventually("the frozen node has noticed", func() bool { return strings.Contains(w.log.String(), "owns nothing until it is") })
	gate.Release()
	w.eventually("the call has been made, or waits", func() bool {
		return runs.Load() > 0 || strings.Contains(w.log.String(), "waits until this node is sure")
	})
	wi.thaw()
	if err := <-made; err == nil || runs.Load() != 0 || elsewhere.Load() != 1 {
		t.Errorf("%v; it ran %d times where it was frozen and %d times at the next owner", err, runs.Load(), elsewhere.Load())
	}
}

// written waits until the log of an agent holds an event like this one. It asks no
// endpoint: one in some is a frozen node's.
func (w *world) written(agent string, like messages.Event) (found messages.Event) {
	w.t.Helper()
	a, err := messages.ParseAgentID(agent)
	w.ok(err)
	w.eventually(like.EventType()+" is written", func() bool {
		for _, raw := range w.stored("REPRISE_LOG_") {
			if !strings.HasSuffix(raw.Subject, "."+a.Kind+"."+a.Key) {
				continue
			}
			f, err := messages.DecodeFrame(a, raw.Data)
			w.ok(err)
			for _, ev := range f.Events {
				if ev.EventType() == like.EventType() {
					found = ev
				}
			}
		}
		return found != nil
	})
	return found
}
