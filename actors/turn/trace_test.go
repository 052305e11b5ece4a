package turn_test

import (
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

const (
	firstTrace  = messages.TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	secondTrace = messages.TraceContext("00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-00 vendor=1")
)

// traced is an agent whose frames carry the trace contexts of commands, and the same agent folded
// from those frames.
type traced struct {
	*inputs
	folded turn.State
}

// give decides a command with a trace context, or an outcome, and returns the turn that it starts; nil:
// none.
func (a *traced) give(trace messages.TraceContext, what any) (started *messages.TurnStarted) {
	a.t.Helper()
	a.env.Trace = trace
	first := a.s.Last + 1
	events, err := a.s.Decide(a.env, what)
	if err != nil {
		a.t.Fatal(err)
	}
	a.folded.Apply(&messages.Frame{First: first, Time: a.env.Now, Trace: trace, Events: events})
	for _, ev := range events {
		if ev, ok := ev.(messages.TurnStarted); ok {
			started = &ev
		}
	}
	return started
}

// runs checks the trace context of the turn that runs, as the machine has it and as the frames have.
func (a *traced) runs(want messages.TraceContext) {
	a.t.Helper()
	for how, s := range map[string]*turn.State{"decided": &a.s, "folded": &a.folded} {
		if s.Turn == nil || s.Turn.Trace != want {
			a.t.Errorf("%s: the turn %+v has not the trace context %q", how, s.Turn, want)
		}
	}
}

// answer ends the turn with the model's answer, or its failure.
func (a *traced) answer(failed bool) *messages.TurnStarted {
	a.t.Helper()
	call := a.s.Turn.Model.ID
	if failed {
		return a.give("", turn.ModelErred{Call: call, Kind: messages.ModelFailureBadRequest, Message: "no"})
	}
	return a.give("", turn.ModelAnswered{Call: call, Items: []messages.Item{messages.Text(messages.RoleAssistant, "so")}})
}

// TestTurnTrace holds that a turn belongs to the trace of its first input, however long that waited
// and whatever ended the turn before, and that a turn that continues another one is below that.
func TestTurnTrace(t *testing.T) {
	a := &traced{inputs: newInputs(t)}
	if ev := a.give(firstTrace, sayAs("u1")); ev == nil || ev.Trace != firstTrace {
		t.Errorf("the turn of an input that need not wait is %+v", ev)
	}
	a.runs(firstTrace)
	a.give(secondTrace, sayAs("u2"))
	a.give("", sayAs("u3"))
	a.runs(firstTrace)
	if ev := a.answer(false); ev == nil || ev.Trace != secondTrace {
		t.Errorf("the turn of an input that waited is %+v", ev)
	}
	a.runs(secondTrace)
	if ev := a.answer(false); ev == nil || ev.Trace != "" {
		t.Errorf("the turn of an input without a trace context is %+v", ev)
	}
	a.runs("")
	failed := a.s.Turn.Span(a.env.Agent)
	a.answer(true)
	if ev := a.give(firstTrace, messages.Resume{ID: "r1"}); ev == nil || ev.Trace != failed {
		t.Errorf("the turn that continues %q is %+v", failed, ev)
	}
	a.runs(failed)
	a.give("", sayAs("u4"))
	if ev := a.give(firstTrace, messages.Interrupt{ID: "i1"}); ev == nil || ev.Trace != "" {
		t.Errorf("the turn that begins behind an interrupted one is %+v", ev)
	}
	a.runs("")
}
