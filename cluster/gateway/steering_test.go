package gateway

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// A prompt names its policy and options beside the protocol's fields; the body
// wins over the header.
func TestPromptsNameTheirPolicy(t *testing.T) { // A100, A101
	h := newHouse(t, nil)
	header := func(policy string) nats.Header { return nats.Header{messages.HeaderPolicy: {policy}} }
	for _, tc := range []struct {
		body   string
		header nats.Header
		want   messages.Policy
	}{
		{"hello", nil, ""},
		{"hello", header("steer"), messages.PolicySteer},
		{`{"prompt":"hello","reprise":{"policy":"interrupt"}}`, nil, messages.PolicyInterrupt},
		{`{"prompt":"hello","reprise":{"policy":"reject"}}`, header("queue"), messages.PolicyReject},
		{`{"prompt":"hello","reprise":{"options":{"max_steps":3,"tool_choice":"required"},"metadata":{"a":1}}}`, header("queue"), messages.PolicyQueue},
	} {
		c := h.prompt(tc.body, tc.header)
		d := h.next()
		in := d.Command.(messages.Input)
		if in.Policy != tc.want || in.Content.Text() != "hello" {
			t.Errorf("%s with %v came as %+v", tc.body, tc.header, in)
		}
		if in.Metadata != nil && (string(in.Metadata) != `{"a":1}` || in.Options != (messages.InputOptions{MaxSteps: 3, ToolChoice: "required"})) {
			t.Errorf("%s came as %+v", tc.body, in)
		}
		d.answers <- messages.Answer{Err: messages.Refuse(messages.Busy, "busy")}
		c.hears("error 409 busy", "end")
	}
	c := h.prompt("hello", header("soon"))
	c.hears(`error 400 policy "soon": write one of [queue steer interrupt reject]`, "end")
}

// A caller that steers a running turn receives it from there on: of the answer under way the
// whole text, once it is there, and no piece out of its middle.
func TestSteeredPromptStreamsTheRunningTurn(t *testing.T) {
	h := newHouse(t, nil)
	h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}}, asks("t2", "m3", "u1"))
	c := h.prompt(`{"prompt":"hello","reprise":{"id":"u2","policy":"steer"}}`, nil)
	d := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u2", messages.Steered, "t2"))
	h.wrote(till, messages.PhaseRunning, accepted("u9", messages.Steered, "t2"))
	d.answers <- messages.Answer{N: n, Turn: "t2", Disposition: messages.Steered}
	h.delta("t2", "m3", "of an answer")
	c.hears("input.accepted")
	h.wrote(till, messages.PhaseRunning, says("t2", "m3", "the middle of an answer"), messages.InputRequeued{Input: "u9", Turn: "t2"}, asks("t2", "m7", "u2"))
	h.delta("t2", "m7", "seen ")
	h.delta("t2", "m7", "you")
	h.wrote(till, messages.PhaseIdle, says("t2", "m7", "seen you too"), messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1", "u2"}, Output: "seen you too"})
	c.hears(`response "the middle of an answer"`, "model.completed model.requested", `response "seen "`, `response "you"`, `response " too"`,
		"model.completed turn.completed", "end")
}

// The caller of a prompt that waits to be accepted is notified of that: it does not give up and
// ask again, and gets no acceptance before there is one.
func TestPromptsThatWaitAreToldSo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	c := h.prompt("hello", nil)
	d := h.next()
	for range 2 {
		msg, err := c.sub.NextMsgWithContext(h.ctx)
		h.ok(err)
		if got := c.told(msg); got != waiting {
			t.Fatalf("heard %s, want %s", got, waiting)
		}
	}
	d.answers <- messages.Answer{Err: messages.Refuse(messages.QueueFull, "the queue is full")}
	c.hears("error 429 the queue is full")
}

// A steered input that no model has seen continues in a turn of its own, and so
// does its stream; the end of the first turn is not its end.
func TestRequeuedPromptStreamsItsOwnTurn(t *testing.T) {
	h := newHouse(t, nil)
	requeued, timer := messages.InputRequeued{Input: "u2", Turn: "t2", Reason: "unseen"}, messages.TimerCancelled{Turn: "t2", Timer: "d"}
	for _, end := range []struct {
		events []messages.Event
		told   string
	}{
		{[]messages.Event{requeued, timer, messages.TurnFailed{Turn: "t2", Inputs: []string{"u1"}}}, "input.requeued"},
		{[]messages.Event{timer, messages.TurnFailed{Turn: "t2", Inputs: []string{"u1"}}, requeued}, "timer.cancelled input.requeued"},
		{[]messages.Event{timer, messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}}, requeued}, "timer.cancelled input.requeued"},
	} {
		h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}}, asks("t2", "m3", "u1"))
		c := h.prompt(`{"prompt":"hello","reprise":{"id":"u2","policy":"steer"}}`, nil)
		d := h.next()
		d.answers <- messages.Answer{N: h.wrote(till, messages.PhaseRunning, accepted("u2", messages.Steered, "t2"))}
		c.hears("input.accepted")
		h.wrote(till, messages.PhaseRunning, end.events...)
		h.wrote(till, messages.PhaseRunning, messages.TurnStarted{Turn: "t9", Inputs: []string{"u7"}}, messages.TurnAborted{Turn: "t9", Inputs: []string{"u7"}})
		h.wrote(till, messages.PhaseRunning, messages.TurnStarted{Turn: "t11", Inputs: []string{"u2"}}, asks("t11", "m12", "u2"))
		h.wrote(till, messages.PhaseIdle, says("t11", "m12", "now you"), messages.TurnCompleted{Turn: "t11", Inputs: []string{"u2"}, Output: "now you"})
		c.hears(end.told, "turn.started model.requested", `response "now you"`, "model.completed turn.completed", "end")
	}
}

func TestPromptsThatEndWithoutATurn(t *testing.T) {
	h := newHouse(t, nil)
	for _, tc := range []struct {
		end  messages.Event
		told string
	}{
		{messages.InputCancelled{Input: "u2", Reason: "never mind"}, `error 409 input "u2" was cancelled before a model had seen it: never mind`},
		{messages.InputDropped{Input: "u2", By: "clear"}, `error 409 input "u2" was dropped (clear) before a model had seen it`},
		{messages.TimerCancelled{Timer: "u2", Input: "u2", By: "clear"}, `error 409 input "u2" was cancelled (clear) before it was due`},
		{messages.TimerFired{Timer: "u2", Input: "u2", Refused: "the queue is full"}, `error 409 input "u2" was refused when it was due: the queue is full`},
	} {
		c := h.prompt(`{"prompt":"hello","reprise":{"id":"u2"}}`, nil)
		d := h.next()
		d.answers <- messages.Answer{N: h.wrote(till, messages.PhaseRunning, accepted("u2", messages.Queued, ""))}
		c.hears("input.accepted")
		h.wrote(till, messages.PhaseRunning, messages.InputCancelled{Input: "u7"}, messages.InputDropped{Input: "u7"}, messages.TimerFired{Timer: "u2", Input: "u2"}, messages.TimerCancelled{Turn: "t1", Timer: "d"}, tc.end)
		c.hears(tc.end.EventType(), tc.told, "end")
	}
	ended := make(chan string, 1)
	go func() {
		said := ""
		for ev, err := range h.client.AskFacts(h.ctx, "support/till", messages.Input{ID: "u8", Content: messages.TextContent("hello")}) {
			switch {
			case err != nil:
				said += " " + string(messages.AsError(err).Code)
			case ev.Terminal():
				said += ev.Type
			}
		}
		ended <- said
	}()
	d := h.next()
	d.answers <- messages.Answer{N: h.wrote(till, messages.PhaseRunning, accepted("u8", messages.Queued, ""))}
	h.wrote(till, messages.PhaseIdle, messages.InputCancelled{Input: "u8"})
	if got := <-ended; got != "input.cancelled conflict" {
		t.Errorf("the client said %q", got)
	}
}

// A caller that waits in the queue is notified of what holds the turn before: a pause may last
// until a person comes. Of that turn it receives nothing else.
func TestQueuedPromptsHearOfPauses(t *testing.T) {
	h := newHouse(t, anybody)
	h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}}, asks("t2", "m3", "u1"))
	c := h.prompt(`{"prompt":"hello","reprise":{"id":"u2"}}`, nil)
	d := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u2", messages.Queued, ""))
	d.answers <- messages.Answer{N: n, Disposition: messages.Queued}
	c.hears("input.accepted")
	h.wrote(till, messages.PhasePaused, requested("a", "{}"), gated("a", "{}"), messages.TurnPaused{Turn: "t2", Reason: "approval", Calls: []messages.CallID{"a"}})
	c.hears("turn.paused") // and is not asked about a call of another's turn
	h.wrote(till, messages.PhaseRunning, messages.TurnResumed{Turn: "t2"}, messages.ApprovalGranted{Turn: "t2", Call: "a", Tool: "refund"})
	c.hears("turn.resumed")
	late := h.prompt(`{"prompt":"hello","reprise":{"id":"u2"}}`, nil)
	d = h.next()
	d.answers <- messages.Answer{N: n, Disposition: messages.Queued, Duplicate: true}
	late.hears("input.accepted", "turn.paused", "turn.resumed")
	h.wrote(till, messages.PhaseRunning, messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}}, messages.TurnStarted{Turn: "t12", Inputs: []string{"u2"}})
	h.wrote(till, messages.PhasePaused, messages.TurnPaused{Turn: "t12", Reason: "max_tokens"})
	h.wrote(till, messages.PhaseIdle, messages.TurnAborted{Turn: "t12", Inputs: []string{"u2"}, By: "abort"})
	for _, c := range []*caller{c, late} {
		c.hears("turn.started", "turn.paused", "turn.aborted", "error 409 turn t12 was aborted (abort)", "end")
	}
}

// The client knows the events that end an input by their type.
func TestTheClientKnowsWhatEndsAnInput(t *testing.T) {
	for _, ev := range append(messages.Events(), messages.TimerFired{Refused: "the queue is full"}) {
		if _, ends := messages.Ended(ev); ends != (client.Event{Type: ev.EventType()}).Terminal() {
			t.Errorf("%s ends an input: %v", ev.EventType(), ends)
		}
	}
}

// What answers in the model's place is streamed as the model's answers are,
// once: a hook's words, and the result of a tool that ends the turn.
func TestAnswersThatNoModelGave(t *testing.T) {
	h := newHouse(t, nil)
	c := h.prompt(`{"prompt":"hello","reprise":{"id":"u1"}}`, nil)
	d := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t2"), messages.TurnStarted{Turn: "t2", Inputs: []string{"u1"}}, asks("t2", "m3", "u1"))
	d.answers <- messages.Answer{N: n}
	h.wrote(till, messages.PhaseRunning, calling("t2", "m3", "Asking for 142 items."), messages.ToolCompleted{Turn: "t2", Call: "c", Output: "42"})
	h.wrote(till, messages.PhaseIdle, messages.TurnCompleted{Turn: "t2", Inputs: []string{"u1"}, Output: "42"})
	c.hears("input.accepted turn.started model.requested", `response "Asking for 142 items."`, "model.completed tool.completed", `response "42"`, "turn.completed", "end")

	c = h.prompt(`{"prompt":"hello","reprise":{"id":"u5"}}`, nil)
	d = h.next()
	n = h.wrote(till, messages.PhaseRunning, accepted("u5", messages.Started, "t6"), messages.TurnStarted{Turn: "t6", Inputs: []string{"u5"}})
	d.answers <- messages.Answer{N: n}
	h.wrote(till, messages.PhaseIdle, calling("t6", "m6", "paid"), messages.ToolCompleted{Turn: "t6", Call: "c", Output: "paid"}, messages.TurnCompleted{Turn: "t6", Inputs: []string{"u5"}, Output: "paid"})
	c.hears("input.accepted turn.started", `response "paid"`, "model.completed tool.completed", `response "paid"`, "turn.completed", "end") // the model's word, then the tool's

	c = h.prompt(`{"prompt":"hello","reprise":{"id":"u7"}}`, nil)
	d = h.next()
	n = h.wrote(till, messages.PhaseRunning, accepted("u7", messages.Started, "t8"), messages.TurnStarted{Turn: "t8", Inputs: []string{"u7"}})
	d.answers <- messages.Answer{N: n}
	h.wrote(till, messages.PhaseIdle, messages.HookDecided{Turn: "t8", Hook: "guard", Decision: "finish", Answer: "Not\ntoday."}, messages.TurnCompleted{Turn: "t8", Inputs: []string{"u7"}, Output: "Not\ntoday."})
	c.hears("input.accepted turn.started", `response "Not\ntoday."`, "hook.decided turn.completed", "end")
}
