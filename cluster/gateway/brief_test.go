package gateway

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// A caller that wants no facts gets the answer, the pauses and the end; one that does gets them all.
func TestBriefCallers(t *testing.T) {
	h := newHouse(t, nil)
	brief := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nats.Header{messages.HeaderFacts: {messages.FactsEnd}})
	d := h.next()
	full := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nil)
	d2 := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t1"), messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}, MaxSteps: 5}, asks("t1", "m1", "u1"))
	for _, d := range []delivered{d, d2} {
		d.answers <- messages.Answer{N: n, Turn: "t1"}
	}
	full.hears("input.accepted turn.started model.requested")
	h.wrote(till, messages.PhaseRunning, calling("t1", "m1", "one moment"), messages.ToolStarted{Turn: "t1", Call: "c"})
	h.wrote(till, messages.PhasePaused, messages.TurnPaused{Turn: "t1", Reason: "tool_unknown"})
	h.wrote(till, messages.PhaseRunning, messages.TurnResumed{Turn: "t1"}, asks("t1", "m2"))
	h.wrote(till, messages.PhaseIdle, says("t1", "m2", "done"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "done"})
	brief.hears(`response "one moment"`, "turn.paused", "turn.resumed", `response "done"`, "turn.completed", "end")
	full.hears(`response "one moment"`, "model.completed tool.started", "turn.paused", "turn.resumed model.requested", `response "done"`, "model.completed turn.completed", "end")
}

// An attentive caller without facts knows from the messages up to where it has seen
// everything, and the last one is the end.
func TestBriefCallersAskAgain(t *testing.T) {
	h := newHouse(t, nil)
	c := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nats.Header{messages.HeaderFacts: {messages.FactsEnd}, messages.HeaderAlive: {"1"}})
	d := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t1"), messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}, MaxSteps: 5}, asks("t1", "m1", "u1"))
	d.answers <- messages.Answer{N: n, Turn: "t1"}
	said := h.wrote(till, messages.PhaseRunning, calling("t1", "m1", "one moment"))
	h.wrote(till, messages.PhaseRunning, asks("t1", "m2"))
	h.wrote(till, messages.PhaseIdle, says("t1", "m2", "done"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "done"})
	var after []string
	for ended := false; !ended; {
		msg, err := c.sub.NextMsgWithContext(h.ctx)
		h.ok(err)
		if msg.Header.Get(messages.HeaderPart) == "" {
			continue
		}
		after = append(after, c.told(msg)+" after "+msg.Header.Get(messages.HeaderAfter))
		ended = msg.Header.Get(messages.HeaderEnd) != ""
	}
	want := []string{"ack after ", `response "one moment" after `, `response "done" after ` + number(said), "turn.completed after " + number(said+2)}
	if !slices.Equal(after, want) {
		t.Errorf("heard %q, want %q", after, want)
	}
	again := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nats.Header{messages.HeaderFacts: {messages.FactsEnd}, messages.HeaderAfter: {number(said)}})
	h.next().answers <- messages.Answer{N: n, Turn: "t1", Duplicate: true}
	again.hears(`response "done"`, "turn.completed", "end")
}

// unencoded is an event that must not be encoded.
type unencoded struct {
	Turn messages.TurnID
	t    *testing.T
}

// EventType is that of a fact of a turn.
func (unencoded) EventType() string { return "tool.started" }

// MarshalJSON fails the test.
func (e unencoded) MarshalJSON() ([]byte, error) {
	e.t.Error("a fact was encoded that no one wants")
	return []byte("{}"), nil
}

// A fact that no one wants costs no encoding.
func TestUnwantedFacts(t *testing.T) {
	h := newHouse(t, nil)
	s := &stream{g: h.g, agent: till, reply: &reply{g: h.g, to: h.nc.NewInbox()}, input: "u1", turn: "t1", brief: true}
	if !s.event(fact{n: 4, ev: unencoded{"t1", t}}) || len(s.facts) > 0 {
		t.Errorf("kept %s", s.facts)
	}
}
