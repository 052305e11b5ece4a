package projections

import (
	"fmt"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// maxCauseText is the most bytes of the text of a Cause.
const maxCauseText = 300

// causeText returns what happened in an event, for a person.
func causeText(ev messages.Event) string {
	for _, of := range []func(messages.Event) (string, bool){stepText, toolText, lifeText, forkText, compactionText} {
		if text, known := of(ev); known {
			return shortened(text, maxCauseText)
		}
	}
	return shortened(strings.TrimSpace(ev.EventType()+" "+summarize(ev)), maxCauseText)
}

// shortened returns the first bytes of a text, at most limit, with a mark if something is cut.
func shortened(s string, limit int) string {
	if short := beginning(s, limit); len(short) < len(s) {
		return short + "…"
	}
	return s
}

// stepText returns what happened to an input, a turn or a model call, and reports whether the event is
// about one.
func stepText(ev messages.Event) (text string, known bool) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		return fmt.Sprintf("input %s (%s): %s", ev.Input, ev.Disposition, quote(ContentText(ev.Content))), true
	case messages.TurnStarted:
		text = "turn " + string(ev.Turn) + " started"
		if ev.Continues != "" {
			text += ", it continues turn " + string(ev.Continues)
		}
		return text + colon(ev.Reason), true
	case messages.TurnCompleted:
		return "the answer is " + quote((&Output{Text: ev.Output, Blob: ev.Blob}).String()), true
	case messages.ModelRequested:
		return fmt.Sprintf("%s was called, step %d, attempt %d", ev.Model, ev.Step, ev.Attempt), true
	case messages.ModelCompleted:
		texts := make([]string, len(ev.Items))
		for i, item := range ev.Items {
			texts[i] = shortened(itemText(item), maxCauseText)
		}
		return "the model answered: " + strings.Join(texts, "; "), true
	case messages.ModelFailed:
		return fmt.Sprintf("attempt %d failed (%s)%s", ev.Attempt, ev.Kind, colon(ev.Message)), true
	}
	return "", false
}

// toolText returns what happened to a call of a tool, and reports whether the event is about one.
func toolText(ev messages.Event) (text string, known bool) {
	switch ev := ev.(type) {
	case messages.ToolRequested:
		return fmt.Sprintf("call %s of %s with %s", ev.Call, ev.Tool, ev.Arguments), true
	case messages.ToolStarted:
		if ev.Dry {
			return fmt.Sprintf("%s was not called: the tools of the fork are dry, attempt %d%s", ev.Tool, ev.Attempt, colon(ev.Reason)), true
		}
		return fmt.Sprintf("%s ran, attempt %d, key %s%s", ev.Tool, ev.Attempt, ev.Key, colon(ev.Reason)), true
	case messages.ToolUnknown:
		return "the outcome of call " + string(ev.Call) + " is unknown" + colon(ev.Reason), true
	case messages.ToolFlagged:
		return "call " + string(ev.Call) + " was flagged" + colon(ev.Reason), true
	case messages.ApprovalRequested:
		return fmt.Sprintf("%s with %s waits for approval%s", ev.Tool, ev.Arguments, colon(ev.Reason)), true
	}
	if text, known := childText(ev); known {
		return text, true
	}
	if d := decisionOf(ev); d.Decision.Decision != "" {
		return fmt.Sprintf("%s was %s%s%s", d.Tool, d.Decision.Decision, source(d.by), colon(d.Reason)), true
	}
	if r := resultOf(ev); r.outcome != "" {
		kind := ""
		if r.kind != "" {
			kind = " (" + string(r.kind) + ")"
		}
		result := (&Output{Text: r.text, Blob: r.blob}).String()
		return fmt.Sprintf("call %s %s%s%s: %s", messages.CallOf(ev), r.outcome, kind, source(r.by), quote(result)), true
	}
	return "", false
}

// childText returns what happened to a call that is the task of a child, and reports whether the event is
// about one.
func childText(ev messages.Event) (text string, known bool) {
	switch ev := ev.(type) {
	case messages.ChildSpawned:
		return fmt.Sprintf("call %s of %s is a task for %s", ev.Call, ev.Tool, shortAddress(ev.Child)), true
	case messages.ChildDecided:
		return fmt.Sprintf("%s of call %s of %s was forwarded%s", ev.Command, ev.Waits, shortAddress(ev.Agent), colon(ev.Reason)), true
	case messages.ChildSettled:
		if ev.Refused != "" {
			return fmt.Sprintf("%s of call %s of %s had no effect (%s)%s", ev.Command, ev.Waits, shortAddress(ev.Agent), ev.Refused, colon(ev.Message)), true
		}
		return fmt.Sprintf("%s of call %s of %s took effect at its event %d%s", ev.Command, ev.Waits, shortAddress(ev.Agent), ev.N, colon(ev.Message)), true
	case messages.ChildCompleted:
		return fmt.Sprintf("%s completed its task at its event %d", shortAddress(ev.Child), ev.N), true
	case messages.ChildFailed:
		return fmt.Sprintf("%s did not complete its task (%s)%s", shortAddress(ev.Child), ev.Reason, colon(ev.Message)), true
	}
	return "", false
}

// lifeText returns what happened to an agent, or to the course of a turn, and reports whether the event is
// about that.
func lifeText(ev messages.Event) (text string, known bool) {
	switch ev := ev.(type) {
	case messages.AgentCreated:
		return "the agent was created", true
	case messages.AgentActivated:
		return fmt.Sprintf("node %s on %s took over, epoch %d after %d", ev.Node, ev.Host, ev.Epoch, ev.Previous), true
	case messages.TurnPaused:
		return fmt.Sprintf("turn %s paused (%s)%s", ev.Turn, ev.Reason, colon(ev.Message)), true
	case messages.TurnResumed:
		return "turn " + string(ev.Turn) + " resumed" + colon(ev.Reason), true
	case messages.TurnFailed:
		return fmt.Sprintf("turn %s failed (%s)%s", ev.Turn, ev.Why(), colon(ev.Message)), true
	case messages.TurnAborted:
		return fmt.Sprintf("turn %s was aborted by %s%s", ev.Turn, ev.By, colon(ev.Reason)), true
	case messages.HookDecided:
		return fmt.Sprintf("hook %s (%s) wants %s %s%s", ev.Hook, ev.Point, ev.Decision, ev.Arguments, colon(ev.Reason)), true
	case messages.TimerSet:
		return fmt.Sprintf("timer %s (%s) was set for %s", ev.Timer, ev.For, ev.At.UTC().Format(time.RFC3339)), true
	case messages.TimerFired:
		return "timer " + ev.Timer + " fired", true
	}
	return "", false
}

// forkText returns what happened to a fork or an imported agent, or to a fork of the agent, and
// reports whether the event is about that.
func forkText(ev messages.Event) (text string, known bool) {
	switch ev := ev.(type) {
	case messages.AgentForked:
		return fmt.Sprintf("the agent was forked from %s at event %d%s", shortAddress(ev.Parent), ev.At, colon(ev.Reason)), true
	case messages.AgentImported:
		return fmt.Sprintf("the agent was imported: its events up to %d are those of %s%s", ev.Last, shortAddress(ev.Source), colon(ev.Reason)), true
	case messages.ForkRequested:
		return fmt.Sprintf("a fork at event %d was requested as %s%s", ev.At, shortAddress(ev.Fork), colon(ev.Reason)), true
	case messages.ForkSettled:
		if ev.Refused != "" {
			return fmt.Sprintf("fork %s was refused (%s)%s", shortAddress(ev.Fork), ev.Refused, colon(ev.Message)), true
		}
		return fmt.Sprintf("fork %s has begun, with event %d", shortAddress(ev.Fork), ev.N), true
	case messages.ForkDetached:
		return fmt.Sprintf("the fork was detached: it has a copy of its parent's events up to %d%s", ev.Last, colon(ev.Reason)), true
	case messages.ToolsEnabled:
		return "the tools of the agent are no longer dry" + colon(ev.Reason), true
	}
	return "", false
}

// compactionText returns what happened to the history, and reports whether the event is about that.
func compactionText(ev messages.Event) (text string, known bool) {
	switch ev := ev.(type) {
	case messages.CompactionRequested:
		return fmt.Sprintf("%s was called for a summary of the history up to event %d, attempt %d%s", ev.Model, ev.Upto, ev.Attempt, colon(ev.Reason)), true
	case messages.CompactionFailed:
		return fmt.Sprintf("attempt %d at a summary failed (%s)%s", ev.Attempt, ev.Kind, colon(ev.Message)), true
	case messages.HistoryCompacted:
		return fmt.Sprintf("a %s replaced %d items of the history up to event %d, and %d remained%s; the model reads %s", ev.How, ev.Dropped, ev.Upto, ev.Kept, colon(ev.Reason), quote(ev.Text)), true
	}
	return "", false
}

// text returns the call as its request, with the arguments that it ran with.
func (c *causedCall) text() string {
	return shortened(fmt.Sprintf("call %s of %s with %s: %s", c.ID, c.Tool, c.Arguments, c.Outcome), maxCauseText)
}

// quote returns the beginning of a text in quotes.
func quote(s string) string { return `"` + shortened(s, maxCauseText) + `"` }

// colon returns a reason behind a colon; empty for none.
func colon(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// source returns where a decision or an outcome comes from, if not from the tool itself.
func source(by messages.By) string {
	switch by {
	case "":
		return ""
	case messages.ByDecision:
		return " by a person"
	case messages.ByRemembered:
		return " by a remembered decision"
	}
	return " by " + string(by)
}

// shortAddress returns an address as a person writes it; what is no address stays as it is.
func shortAddress(agent string) string {
	if a, err := messages.ParseAgentID(agent); err == nil {
		return a.String()
	}
	return agent
}

// personName returns who decided, for a sentence.
func personName(p *messages.Person) string {
	switch {
	case p == nil:
		return "a person without a name"
	case p.Claimed:
		return p.Name + " (claimed)"
	}
	return p.Name
}
