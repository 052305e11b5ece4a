package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// toolAttempt is an attempt at a tool call.
type toolAttempt struct {
	call  ToolCall // as of its start
	child string   // the full address of the agent that it is the task of; empty: it runs here
	start time.Time
	// end is zero while it runs, failed why it has failed, output what the model reads of it.
	end    time.Time
	failed string
	output string
}

// attempt folds the beginning or end of an attempt at a tool call.
func (t *tracedTurn) attempt(e *event) {
	switch ev := e.Event.(type) {
	case messages.ToolStarted:
		t.endAttempt(e, "lost", "")
		if c := t.details.effects.find(e.Turn, e.Call); c != nil {
			t.attempts = append(t.attempts, toolAttempt{call: c.ToolCall, start: e.at})
		}
	case messages.ChildSpawned:
		if a := t.running(e.Call); a != nil {
			a.child = ev.Child
		}
	case messages.ToolUnknown:
		t.endAttempt(e, "unknown", "")
	default:
		switch r := resultOf(e.Event); r.outcome {
		case "":
		case CallFailed:
			t.endAttempt(e, string(r.kind), r.text)
		default:
			t.endAttempt(e, "", r.text)
		}
	}
	if e.Is(messages.EndsTurn) {
		for a := t.running(""); a != nil; a = t.running("") {
			a.end, a.failed = e.at, "unknown"
		}
	}
}

// running returns the attempt at a call that has not ended, or at any call if that is empty. Nil:
// there is none.
func (t *tracedTurn) running(call messages.CallID) *toolAttempt {
	i := slices.IndexFunc(t.attempts, func(a toolAttempt) bool { return a.end.IsZero() && (call == "" || a.call.ID == call) })
	if i < 0 {
		return nil
	}
	return &t.attempts[i]
}

// endAttempt ends the attempt at the call that the event names, if one runs.
func (t *tracedTurn) endAttempt(e *event, failed, output string) {
	if a := t.running(e.Call); a != nil && e.Call != "" {
		a.end, a.failed, a.output = e.at, failed, output
	}
}

// span returns the span of the attempt.
func (a *toolAttempt) span(d *TurnDetail, content bool) Span {
	c := &a.call
	s := d.below(d.CallSpan(d.Agent, c))
	s.does("execute_tool", c.Tool)
	s.Start, s.End = a.start, a.end
	s.say("gen_ai.tool.name", c.Tool)
	s.say("gen_ai.tool.call.id", string(c.ID))
	s.say("gen_ai.tool.type", "function")
	s.count("reprise.step", int64(c.Step))
	s.count("reprise.attempt", int64(c.Attempt))
	s.say("reprise.idempotency_key", c.Key)
	s.say("reprise.child", a.child)
	if c.Dry {
		s.say("reprise.dry", "true")
	}
	if a.failed != "" {
		s.fail(a.failed)
	}
	if content {
		s.say("gen_ai.tool.call.arguments", beginning(c.Arguments, MaxSpanText))
		s.say("gen_ai.tool.call.result", beginning(a.output, MaxSpanText))
	}
	return s
}
