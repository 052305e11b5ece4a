package projections

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// begin adds the row that an event begins, if it begins one.
func (t *Timeline) begin(e *event) {
	switch ev := e.Event.(type) {
	case messages.InputAccepted:
		r := Row{Kind: RowInput, Title: ContentText(ev.Content), Status: string(ev.Disposition), Person: e.by}
		if ev.Disposition != messages.Started {
			r.wait(e.at)
		}
		t.add(e, r, &inputRow{ev.Input})
	case messages.TurnStarted:
		fold := new(turnRow)
		r := Row{Kind: RowTurn}
		fold.apply(&r, e)
		t.add(e, r, fold)
	case messages.ToolRequested:
		fold := &toolRow{ToolCall{Turn: e.Turn, ID: e.Call, Outcome: CallRequested}}
		r := Row{Kind: RowTool}
		fold.apply(&r, e)
		t.add(e, r, fold)
	case messages.ApprovalRequested:
		r := Row{Kind: RowApproval, Title: ev.Tool, Status: string(CallWaiting), Text: ev.Reason}
		r.wait(e.at)
		t.add(e, r, &approvalRow{e.Turn, e.Call})
	case messages.ChildSpawned:
		t.spawn(e, ev)
	case messages.TimerSet:
		if ev.For == ForInput && ev.Input != nil {
			t.add(e, Row{Kind: RowTimer, Title: ContentText(ev.Input.Content), Status: "set", Text: "due " + fieldText(ev.At), Person: e.by}, &timerRow{ev.Timer})
		}
	default:
		if !t.beginModel(e) {
			t.moment(e)
		}
	}
}

// beginModel adds the row of a model call that an event begins, or of a compaction without one.
func (t *Timeline) beginModel(e *event) bool {
	kind := RowModel
	if e.Is(messages.Summarizes) {
		kind = RowCompaction
	}
	switch {
	case e.Is(messages.BeginsModelCall):
		t.add(e, Row{Kind: kind, Title: messages.ModelOf(e.Event), Status: "running"}, &modelRow{modelCall(e.Fields, e.Event)})
	case kind == RowCompaction && e.Call == "":
		r := Row{Kind: kind}
		(&modelRow{}).apply(&r, e)
		t.add(e, r, nil)
	default:
		return false
	}
	return true
}

// moment adds the row of something that takes no time.
func (t *Timeline) moment(e *event) {
	r := Row{Person: e.by}
	switch ev := e.Event.(type) {
	case messages.AgentActivated:
		t.node = ev.Node
		r.Kind, r.Title, r.Text = RowOwner, "node "+cmp.Or(ev.Node, "without a name"), t.cutShort()
		if ev.Host != "" {
			r.Title += " on " + ev.Host
		}
		r.Status = fmt.Sprintf("epoch %d", ev.Epoch)
	case messages.AgentCreated:
		r.Kind, r.Title, r.Status = RowAgent, ev.Agent, "created"
		if ev.Parent != "" {
			r.Text = "child of " + ev.Parent
		}
	case messages.AgentForked:
		r.Kind, r.Title, r.Status, r.Text = RowAgent, ev.Agent, "forked", originText(ev.Parent, ev.At, ev.Reason)
	case messages.AgentImported:
		r.Kind, r.Title, r.Status, r.Text = RowAgent, ev.Agent, "imported", originText(ev.Source, ev.Last, ev.Reason)
	case messages.ToolsEnabled:
		r.Kind, r.Title, r.Status, r.Text = RowAgent, "its tools are no longer dry", "changed", ev.Reason
	case messages.AgentConfigured:
		r.Kind, r.Title, r.Status, r.Text = RowAgent, "model "+ev.Model, "configured", ev.Reason
	case messages.AgentCleared:
		r.Kind, r.Title, r.Status, r.Text = RowAgent, "history and state are empty", "cleared", ev.Reason
	case messages.AgentDeleted:
		r.Kind, r.Title, r.Status = RowAgent, "what came before is gone", "deleted"
	case messages.HookDecided:
		r.Kind, r.Title, r.Status = RowHook, ev.Hook+" "+string(ev.Point), ev.Decision
		r.Text = cmp.Or(ev.Reason, ev.Answer, ev.Arguments, ev.Note)
		if HookAction(ev.Decision) == HookContinue {
			return
		}
	case messages.StatePatched:
		r.Kind, r.Title, r.Text = RowState, string(ev.Patch), ev.Reason
	case messages.BudgetExhausted:
		r.Kind, r.Title, r.Status, r.Text = RowLimit, fmt.Sprintf("%s of the %s", ev.Limit, ev.Scope), "exceeded", ev.Message
	case messages.BudgetRaised:
		r.Kind, r.Title, r.Status, r.Text = RowLimit, fmt.Sprintf("%s: %s", ev.Scope, limitsText(ev.Limits)), "changed", ev.Reason
	case messages.ModelSwitched:
		r.Kind, r.Title, r.Status, r.Text = RowModel, ev.From+" to "+ev.To, "switched", ev.Reason
	default:
		return
	}
	t.add(e, r, nil)
}

// originText returns which agent a fork or an imported agent continues, and why.
func originText(agent string, at messages.EventNumber, reason string) string {
	text := fmt.Sprintf("from %s at event %d", agent, at)
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// cutShort returns what was under way and what the owner before did not finish. Empty: nothing.
func (t *Timeline) cutShort() string {
	var calls []string
	for _, o := range t.open {
		switch r := &t.rows[o.index]; {
		case r.Kind == RowModel, r.Kind == RowCompaction, r.Kind == RowTool && r.Status == string(CallRunning):
			calls = append(calls, string(r.Kind)+" "+r.Title)
		}
	}
	if calls == nil {
		return ""
	}
	return "under way: " + strings.Join(calls, ", ")
}

// inputRow folds an accepted input until a model call or a turn has taken it.
type inputRow struct{ id string }

func (i *inputRow) about(e *event) bool {
	return e.Is(messages.AdmitsInputs|messages.EndsInput|messages.LeavesTurn) && slices.Contains(messages.InputsOf(e.Event), i.id)
}

func (i *inputRow) apply(r *Row, e *event) (own, ended bool) {
	switch e.Event.(type) {
	case messages.InputRequeued:
		r.Turn, r.Status = "", string(messages.Queued)
		return true, false
	case messages.InputCancelled:
		r.Status = "cancelled"
	case messages.InputDropped:
		r.Status = "dropped"
	default:
		r.Turn = e.Turn
	}
	return true, true
}

// turnRow folds a turn.
type turnRow struct{ Turn }

func (t *turnRow) about(e *event) bool { return e.Turn == t.ID && !e.Is(messages.BeginsTurn) }

func (t *turnRow) apply(r *Row, e *event) (own, ended bool) {
	t.ID = e.Turn
	t.Turn.apply(e)
	r.Title, r.Status, r.Text = "turn "+string(t.ID), string(t.Phase), t.Message
	if t.Continues != "" {
		r.Title += " continues " + string(t.Continues)
	}
	if why := cmp.Or(string(t.Kind), t.Reason, t.Finish, t.By); why != "" {
		r.Status += " (" + why + ")"
	}
	if output, ok := turnOutput(e.Event); ok {
		r.Text = output.String()
	}
	if r.Text = beginning(r.Text, MaxPreview); t.Paused() != "" {
		r.wait(e.at)
	} else {
		r.waited(e.at)
	}
	if e.by != nil && (e.Is(messages.HoldsTurn) || t.Phase == Aborted) {
		r.Person = e.by
	}
	return e.Is(messages.HoldsTurn), t.Ended != 0
}

// modelRow folds one attempt at a model call.
type modelRow struct{ ModelCall }

func (m *modelRow) about(e *event) bool {
	if e.Is(messages.EndsTurn) {
		return e.Turn == m.Turn && m.Turn != ""
	}
	return e.Is(messages.EndsModelCall) && e.Call == m.Call
}

func (m *modelRow) apply(r *Row, e *event) (own, ended bool) {
	usage, _, _ := UsedBy(e.Event)
	used := fmt.Sprintf("%d tokens in, %d out", usage.Input, usage.Output)
	switch ev := e.Event.(type) {
	case messages.ModelCompleted:
		r.Status, r.Text = used, answerText(ev.Items)
		if finish := UnusualFinish(ev.Finish); finish != "" {
			r.Status += ", " + finish
		}
	case messages.ModelFailed:
		r.Status, r.Text = "failed ("+string(ev.Kind)+")", ev.Message
	case messages.CompactionFailed:
		r.Status, r.Text = "failed ("+string(ev.Kind)+")", ev.Message
	case messages.HistoryCompacted:
		r.Title = strings.TrimSpace(r.Title + " " + ev.How)
		r.Status, r.Text = fmt.Sprintf("%d items replaced, %d kept", ev.Dropped, ev.Kept), ev.Text
	case messages.ModelRestarted:
		r.Status, r.Text = "lost", ev.Reason
	default:
		r.Status = "lost"
	}
	r.Text = beginning(r.Text, MaxPreview)
	return true, true
}

// answerText returns the text of a model's answer, else the calls that it asks for.
func answerText(items []messages.Item) string {
	var texts, calls []string
	for _, item := range items {
		switch text := ContentText(item.Content); {
		case item.Type == messages.ItemCall:
			calls = append(calls, item.Name)
		case item.Type == messages.ItemMessage && text != "":
			texts = append(texts, text)
		}
	}
	if texts == nil && calls != nil {
		return "calls " + strings.Join(calls, ", ")
	}
	return strings.Join(texts, "\n")
}

// toolRow folds a call of a tool.
type toolRow struct{ ToolCall }

func (c *toolRow) about(e *event) bool {
	return e.Turn == c.Turn && (e.Call == c.ID || e.Is(messages.EndsTurn)) && e.Turn != ""
}

func (c *toolRow) apply(r *Row, e *event) (own, ended bool) {
	own = e.Is(messages.OfTool)
	if c.ToolCall.apply(e); e.Is(messages.EndsTurn) {
		c.giveUp(e)
		own, ended = true, true
	}
	r.Title, r.Status = beginning(c.Tool+"("+c.Arguments+")", MaxPreview), string(c.Outcome)
	if c.Kind != "" {
		r.Status += " (" + string(c.Kind) + ")"
	}
	if c.By != "" {
		r.Status += " by " + string(c.By)
	}
	if c.Dry {
		r.Status += ", dry"
	}
	if c.Attempt > 1 {
		r.Status += fmt.Sprintf(", attempt %d", c.Attempt)
	}
	if c.Flagged != "" {
		r.Status += ", repeats " + string(c.Flagged)
	}
	r.Text, r.Person = beginning(cmp.Or(c.Output, c.Reason), MaxPreview), c.Person
	if c.Outcome == CallWaiting || c.Outcome == CallUnknown {
		r.wait(e.at)
	} else {
		r.waited(e.at)
	}
	return own, ended || c.Outcome.Final()
}

// approvalRow folds a call that waits for a person's approval until that is decided.
type approvalRow struct {
	turn messages.TurnID
	call messages.CallID
}

func (a *approvalRow) about(e *event) bool {
	return e.Turn == a.turn && (e.Call == a.call && e.Is(messages.OfTool) || e.Is(messages.EndsTurn))
}

func (a *approvalRow) apply(r *Row, e *event) (own, ended bool) {
	d := decisionOf(e.Event)
	switch {
	case d.Decision.Decision != "":
		r.Status, r.Text = d.Decision.Decision, beginning(cmp.Or(d.Reason, d.Text, r.Text), MaxPreview)
		if d.by != messages.ByDecision {
			r.Status += " by " + string(d.by)
		} else {
			r.Person = e.by
		}
	case e.Is(messages.EndsTurn | messages.EndsTool):
		r.Status = "not decided"
	default:
		return false, false
	}
	return true, true
}

// spawn adds the row of a child.
func (t *Timeline) spawn(e *event, ev messages.ChildSpawned) {
	r := Row{Kind: RowChild, Title: ev.Child, Status: ChildRunning, Text: ev.Tool}
	if ev.Detached {
		r.Status = ChildDetached
		t.add(e, r, nil)
		return
	}
	t.add(e, r, &childRow{Child{Turn: e.Turn, Call: e.Call, Status: ChildRunning}})
}

// childRow folds a child.
type childRow struct{ Child }

func (c *childRow) about(e *event) bool { return e.Turn == c.Turn && e.Call == c.Call }

func (c *childRow) apply(r *Row, e *event) (own, ended bool) {
	before := c.Child
	c.Child.apply(e.Event)
	if r.Status = c.Status; c.Status == ChildWaits {
		r.wait(e.at)
	} else {
		r.waited(e.at)
	}
	if c.Message != "" {
		r.Text = beginning(c.Message, MaxPreview)
	}
	end := childEndOf(e.Event).status
	return before != c.Child, end != "" && end != ChildStopping
}

// timerRow folds a timer of the agent.
type timerRow struct{ id string }

func (t *timerRow) about(e *event) bool { return e.Turn == "" && timerOver(e.Event).id == t.id }

func (t *timerRow) apply(r *Row, e *event) (own, ended bool) {
	if r.Status = "cancelled"; timerOver(e.Event).fired {
		r.Status = "fired"
	}
	return true, true
}
