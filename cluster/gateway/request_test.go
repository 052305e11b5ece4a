package gateway

import (
	"testing"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// TestRequestRefusals asks for requests that there are not.
func TestRequestRefusals(t *testing.T) {
	h := newHouse(t, nil)
	refused := func(n messages.EventNumber, want string) {
		t.Helper()
		if _, err := h.client.Request(h.ctx, till.String(), n); err == nil || messages.AsError(err).Message != want {
			t.Errorf("event %d: got %v, want %q", n, err, want)
		}
	}
	refused(0, "this node does not put requests together")
	rt, err := actors.NewRuntime(h.ctx, actors.Config{Store: eventlog.Store{Log: h.log, Blobs: h.log, Snapshots: h.log, Definitions: h.log}})
	h.ok(err)
	h.g.Requested = rt.Requested
	refused(0, "agent support/till does not exist: nothing was ever sent to it")
	h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}})
	refused(0, "agent support/till has called no model")
	refused(2, "event 2 of agent support/till (turn.started) belongs to no model call, and there is none before it")
	h.wrote(till, messages.PhaseRunning, messages.ModelRequested{Turn: "t2", Step: 1, Call: "m3", Model: "demo/demo", Definition: "none"})
	h.wrote(till, messages.PhaseRunning, accepted("u2", messages.Queued, ""))
	refused(4, "event 4 of agent support/till (input.accepted) belongs to no model call: the newest one before it was requested by event 3")
	refused(5, "agent support/till has 4 events: there is no event 5")
	refused(3, "definition none, which event 3 of agent support/till names, is not stored: put it back from a backup; the view history as of that event has the items")

	definition, err := h.log.PutDefinition(h.ctx, []byte(`{"kind":"support","instructions":"Be brief."}`))
	h.ok(err)
	n := h.wrote(till, messages.PhaseRunning, messages.ModelRequested{Turn: "t2", Step: 2, Call: "m5", Model: "demo/demo", Definition: string(definition)})
	r, err := h.client.Request(h.ctx, till.String(), 0)
	if h.ok(err); r.N != n || r.Instructions != "Be brief." || r.Matches || len(r.Items) != 1 {
		t.Errorf("got %+v, want the request of event %d, which has no hash", r, n)
	}
	n = h.wrote(till, messages.PhaseDeleted, messages.AgentDeleted{})
	refused(n, "event 6 of agent support/till (agent.deleted) belongs to no model call, and there is none before it")
	h.ok(h.log.Purge(h.ctx, till, h.tails[till].Seq))
	refused(3, "what happened to agent support/till before event 6 was deleted: there is no event 3 any more")
}
