package turn_test

import (
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// inputs is an agent that is sent inputs, with a definition that may be renewed.
type inputs struct {
	t   *testing.T
	s   turn.State
	env turn.Env
}

func newInputs(t *testing.T) *inputs {
	return &inputs{t: t, env: turn.Env{
		Agent: messages.AgentID{Tenant: "default", Kind: "a", Key: "1"}, Now: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
		Definition: turn.Definition{Digest: "d1", Model: "p/m", MaxSteps: 9, MaxQueue: 9, MaxAttempts: 3, Parallel: 1},
	}}
}

func (in *inputs) decide(c messages.Command) []messages.Event {
	in.t.Helper()
	events, err := in.s.Decide(in.env, c)
	if err != nil {
		in.t.Fatal(err)
	}
	return events
}

func sayAs(id string) messages.Input {
	return messages.Input{ID: id, Content: messages.TextContent("hello")}
}

// An input names the turn that it begins, also if that turn takes another definition.
func TestInputNamesItsTurn(t *testing.T) {
	in := newInputs(t)
	in.decide(sayAs("u1"))
	renewed := in.env.Definition
	renewed.Digest = "d2"
	in.env.Next = &renewed
	second := sayAs("u2")
	second.Policy = messages.PolicyInterrupt
	var named, began messages.TurnID
	for _, ev := range in.decide(second) {
		switch ev := ev.(type) {
		case messages.InputAccepted:
			named = ev.Turn
		case messages.TurnStarted:
			began = ev.Turn
		}
	}
	if named == "" || named != began {
		t.Errorf("the input names turn %q, and turn %q began", named, began)
	}
}

// A scheduled input that is cancelled takes no input along that has the same id.
func TestCancelledScheduleLeavesInputs(t *testing.T) {
	in := newInputs(t)
	later := sayAs("x")
	later.In = messages.Span(time.Hour)
	in.decide(later)
	in.decide(sayAs("u1"))
	in.decide(sayAs("x")) // the window of ids is over by then
	in.decide(messages.Cancel{ID: "c", Timer: "x"})
	if queued := in.s.Inputs.Queued; len(queued) != 1 || queued[0].ID != "x" {
		t.Errorf("these wait: %+v", queued)
	}
}
