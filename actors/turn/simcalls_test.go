package turn_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// callFacts is a tool call of the newest step.
type callFacts struct {
	id        messages.CallID
	tool      string
	arguments string // as it would run
	rewritten bool
	onUnknown messages.OnUnknown
	running   bool
	attempt   int
	unknown   bool
	settled   bool
	completed bool
	output    string
	wants     bool // approval, by the definition and the hooks
	singled   bool // a hook, or what it repeats, wants a person to look at this very call
	gated     bool // waits for a decision
	decision  string
	flagDue   bool // it repeats an effect and must be flagged
	child     *childFacts
}

// rememberedDecision is a remembered decision about a tool.
type rememberedDecision struct {
	granted bool
	text    string
}

// doneFact is a call that may have had its effect.
type doneFact struct {
	id              messages.CallID
	tool, arguments string
}

func (o *openTurn) call(id messages.CallID) *callFacts {
	for _, c := range o.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (o *openTurn) count(is func(*callFacts) bool) (n int) {
	for _, c := range o.calls {
		if is(c) {
			n++
		}
	}
	return n
}

func running(c *callFacts) bool { return c.running }
func gated(c *callFacts) bool   { return c.gated }
func unknown(c *callFacts) bool { return c.unknown }
func open(c *callFacts) bool    { return !c.settled }

// inTurn checks the events of a turn that has begun and not ended.
func (c *checker) inTurn(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.TurnPaused:
		c.paused(ev)
	case messages.TurnResumed:
		c.resumed()
	case messages.HookDecided:
		c.hookDecided(ev)
	case messages.ModelRequested, messages.ModelCompleted, messages.ModelFailed, messages.ModelRestarted, messages.ModelSwitched:
		c.modelEvent(ev)
	case messages.BudgetReserved, messages.BudgetSettled, messages.BudgetExhausted:
		c.budgetEvent(ev)
	case messages.TimerSet, messages.TimerFired, messages.TimerCancelled:
		c.timerEvent(ev)
	case messages.ToolRequested:
		c.requested(ev)
	case messages.ToolStarted:
		c.toolStarted(ev)
	case messages.ToolFlagged:
		c.flagged(ev)
	case messages.ApprovalRequested, messages.ApprovalGranted, messages.ApprovalDenied:
		c.approvalEvent(ev)
	default:
		if !c.childEvent(ev) {
			c.settles(ev)
		}
	}
}

func (c *checker) paused(ev messages.TurnPaused) {
	o := c.open
	c.must(o.paused == "" && o.count(active) == 0, "a pause of what is paused, or of what runs")
	c.must(o.model == nil || !o.model.underWay && !o.model.waiting, "a pause while a model call is under way")
	var waiting []messages.CallID
	for _, call := range o.calls {
		if call.gated || call.unknown || stalled(call) {
			waiting = append(waiting, call.id)
		}
	}
	switch ev.Reason {
	case "approval":
		c.must(o.count(gated) > 0 && slices.Equal(ev.Calls, waiting), "a pause without calls that wait")
	case "tool_unknown":
		c.must(o.count(gated) == 0 && o.count(unknown) > 0 && slices.Equal(ev.Calls, waiting), "a pause without calls that wait")
	case "child":
		c.must(o.count(gated) == 0 && o.count(unknown) == 0 && o.count(stalled) > 0 && slices.Equal(ev.Calls, waiting), "a pause for no child")
	case "hook":
		c.must(o.held, "a pause that no hook wanted")
	default:
		c.must(o.exhausted == ev.Reason, "a pause for a limit that was not reached")
	}
	o.paused = ev.Reason
}

func (c *checker) resumed() {
	o := c.open
	c.must(o.paused != "", "resumed what was not paused")
	switch o.paused {
	case "hook":
		o.held = false
	case "approval", "tool_unknown", "child":
	default:
		o.exhausted = ""
	}
	if _, ok := c.cmd.(messages.Resume); !ok && c.cmd != nil {
		c.must(o.paused == "approval" || o.paused == "tool_unknown" || o.paused == "child", "a pause ended by itself")
	}
	o.paused, o.asked = "", map[turn.Point]int{}
}

func (c *checker) hookDecided(ev messages.HookDecided) {
	o := c.open
	o.hooked = true
	end := ev.Point == "turn_end"
	switch ev.Decision {
	case "pause":
		o.held = o.held || ev.Call == "" || ev.Point == "after_tool"
		if call := o.call(ev.Call); call != nil && ev.Point == "before_tool" {
			call.wants, call.singled = true, true
		}
	case "finish":
		o.finish = o.finish && ev.Answer == "" || !end
	case "skip":
		o.finish = o.finish || ev.Point == "turn_start" || ev.Point == "before_model"
	case "rewrite":
		if call := o.call(ev.Call); call != nil && ev.Arguments != "" {
			call.arguments, call.rewritten = ev.Arguments, true
			if ev.Point == "before_tool" {
				c.repeats(call)
			}
		} else if end {
			o.finish = false
		}
	case "continue":
		if end && ev.Note != "" {
			o.finish, o.final, o.calls = false, false, nil
		}
	case "failed":
		o.failed = o.failed || ev.Call == "" && !end
	}
}

// hooksAsked checks that hooks are not asked at the same place again and again.
// Once is allowed, when some have answered in the model's place and one at the
// turn's end was not content, and once more for each input that steers. A request that does not
// hold any more does not count.
func (c *checker) hooksAsked(at turn.Point) {
	c.open.asked[at]++
	c.must(c.open.asked[at] <= 2+c.open.steers, "hooks were asked again without a model call or a person between")
}

func (c *checker) requested(ev messages.ToolRequested) {
	o := c.open
	c.must(ev.Call != "" && !o.ids[ev.Call], "two calls of one id")
	c.must(o.answered, "a call that no model asked for")
	call := &callFacts{id: ev.Call, tool: ev.Tool, arguments: ev.Arguments}
	o.ids[ev.Call], o.acted, o.calls = true, o.acted || !o.cut, append(o.calls, call)
	answer, ok := c.cmd.(turn.ModelAnswered)
	tool, known := c.s.env.Definition.Tools[ev.Tool]
	if ok && known {
		call.onUnknown = tool.OnUnknown
		call.wants = tool.Approval == turn.ApproveAlways || tool.Approval == turn.ApproveAsked && !answer.Reviewed[ev.Call].Free
		c.repeats(call)
	}
}

func (c *checker) toolStarted(ev messages.ToolStarted) {
	o, call := c.open, c.open.call(ev.Call)
	c.must(call != nil && !call.settled && call.tool == ev.Tool, "a start of no call")
	c.must(!o.cut, "a call of an answer that was cut off ran")
	c.must(o.choice != "none" || c.cmd == nil, "a tool ran in a turn that may use none")
	again := ev.Reason == "restart" || ev.Reason == "reconcile"
	c.must(o.paused == "" && !call.gated, "a call started while its turn was paused, or before its decision")
	c.must(!call.wants || call.decision == "granted", "a gated call started without a grant")
	c.must(again || !o.held && o.exhausted == "", "a call started while a hook or a limit holds the turn")
	c.must(again || !o.finish || ev.Reason == "decision", "a call started in a turn that a hook ends")
	c.must(!call.running || again, "a call was started twice")
	c.must(ev.Attempt == call.attempt+1, "the attempts are miscounted")
	c.must(ev.Attempt == 1 || ev.OnUnknown != messages.Pause || ev.Reason == "decision", "a tool with OnUnknown Pause ran twice unasked")
	c.must(!again || ev.Reason != "restart" || c.cmd == nil || c.cmd == any(turn.Recover{}), "a restart without a crash")
	c.must(call.running || o.count(active) < c.s.env.Definition.Parallel || c.cmd == nil, "too many tools at once")
	want := ""
	if call.rewritten {
		want = call.arguments
	}
	c.must(ev.Arguments == want, "a call runs with other arguments than were settled")
	known, seen := c.keys[ev.Key]
	c.must(seen == (ev.Attempt > 1) && (!seen || known == ev.Call), "the key is not the call's own")
	c.keys[ev.Key] = ev.Call
	call.running, call.unknown, call.attempt, call.onUnknown = true, false, ev.Attempt, ev.OnUnknown
	if ev.Attempt == 1 && (ev.OnUnknown == messages.Pause || ev.OnUnknown == messages.Rerun) {
		c.done = append(c.done, doneFact{ev.Call, ev.Tool, call.arguments})
	}
}

// settles checks the result of a call, or that there will be none.
func (c *checker) settles(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ToolUnknown:
		call := c.open.call(ev.Call)
		c.must(call != nil && call.running, "an unknown outcome of what did not run")
		_, defined := c.s.env.Definition.Tools[call.tool]
		c.must(call.onUnknown != messages.ReadOnly && call.onUnknown != messages.Rerun || c.cmd == nil || !defined && call.onUnknown == messages.Rerun, "an unknown outcome of what can run again")
		call.running, call.unknown = false, true
	case messages.ToolCompleted:
		call := c.result(ev.Call)
		c.toolCompleted(call, ev)
		call.completed, call.output = true, ev.Output
		c.settle(call)
	case messages.ToolFailed:
		call := c.result(ev.Call)
		c.toolFailed(call, ev)
		c.settle(call)
	case messages.ToolSkipped:
		call := c.result(ev.Call)
		c.must(call.attempt == 0, "skipped what had run")
		c.settle(call)
	case messages.ToolDenied:
		call := c.result(ev.Call)
		c.must(call.decision == "denied" && call.attempt == 0, "denied without a decision, or what had run")
		c.settle(call)
	default:
		c.must(false, "an event that the checker does not know: "+ev.EventType())
	}
}

// result is the call that gets one.
func (c *checker) result(id messages.CallID) *callFacts {
	call := c.open.call(id)
	c.must(call != nil && !call.settled, "a second result, or one of no call")
	return call
}

func (c *checker) settle(call *callFacts) {
	call.settled, call.running, call.unknown, call.gated, call.flagDue = true, false, false, false, false
}

func (c *checker) toolCompleted(call *callFacts, ev messages.ToolCompleted) {
	switch cmd := c.cmd.(type) {
	case nil:
	case turn.ToolReturned:
		c.must(ev.By == "" && call.running && cmd.Failed == "" && cmd.Call == ev.Call && cmd.Attempt == call.attempt && cmd.Output == ev.Output, "a result of another call or attempt")
	case turn.ToolReconciled:
		c.must(ev.By == "reconcile" && call.running && cmd.Call == ev.Call && cmd.Outcome == messages.OutcomeCompleted && call.onUnknown == messages.Reconcile, "a result that no tool reported")
	case messages.Decide:
		c.must(ev.By == "decision" && call.unknown && cmd.Call == ev.Call && cmd.Outcome == messages.OutcomeCompleted, "a result that no person decided")
	case messages.Report:
		c.must(ev.By == "" && call.running && call.child != nil && cmd.Call == ev.Call && cmd.What == messages.ReportCompleted && cmd.Output == ev.Output, "a result that no child reported")
	case turn.MessageStored:
		c.must(call.running && call.child != nil && call.child.detached && cmd.ID == call.child.input, "a call completed whose task is not stored")
	default:
		c.must(false, "a result out of nothing")
	}
}

func (c *checker) toolFailed(call *callFacts, ev messages.ToolFailed) {
	if cmd, ok := c.cmd.(turn.ToolReturned); ok && cmd.Call == ev.Call && call.running && ev.Kind == cmd.Failed {
		c.must(cmd.Attempt == call.attempt && ev.Message == cmd.Output, "a failure of another attempt")
	} else if d, ok := c.cmd.(messages.Decide); ok && ev.By == "decision" {
		c.must(call.unknown && d.Call == ev.Call && d.Outcome == messages.OutcomeFailed, "a failure that no person decided")
	}
	stops := call.running && call.child != nil && !call.child.detached && ev.Kind == "interrupted"
	c.must(!stops || call.child.aborted, "a child keeps running that is not awaited")
	_, reported := c.cmd.(messages.Report)
	c.must(ev.Kind != "child" || c.cmd == nil || reported && call.child != nil, "a child failed that did not report it")
	c.must(ev.Message != "", "a failure without a word for the model")
	if ev.Kind == "error" || ev.Kind == "bad_arguments" { // it reports that it had no effect
		c.done = slices.DeleteFunc(c.done, func(d doneFact) bool { return d.id == ev.Call })
	}
}

func (c *checker) approvalEvent(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ApprovalRequested:
		call := c.result(ev.Call)
		was, remembered := c.remembered[ev.Tool]
		covered := remembered && !(was.granted && (call.singled || c.cmd == nil))
		c.must(!call.gated && call.attempt == 0 && call.decision == "" && !covered, "approval was asked for what needs none")
		c.must(ev.Arguments == call.arguments && ev.ArgsHash == messages.HashArguments(call.arguments), "approval was asked for other arguments")
		call.gated, call.wants = true, true
	case messages.ApprovalGranted:
		call := c.result(ev.Call)
		cmd, _ := c.cmd.(messages.Approve)
		c.must(ev.By != "decision" || cmd.Turn == "" || cmd.Turn == ev.Turn, "a decision about a call of another turn")
		c.decides(call, "granted", ev.By, cmd.Call, cmd.ArgsHash)
		c.must(ev.By != "remembered" || c.remembered[ev.Tool].granted && !call.singled, "a grant was remembered that no person gave")
		c.remember(ev.Remember, ev.Tool, rememberedDecision{granted: true})
		c.must(c.cmd == nil || ev.Remember == cmd.Remember, "remembered what was not to be")
	case messages.ApprovalDenied:
		call := c.result(ev.Call)
		cmd, _ := c.cmd.(messages.Deny)
		c.must(ev.By != "decision" || cmd.Turn == "" || cmd.Turn == ev.Turn, "a decision about a call of another turn")
		c.decides(call, "denied", ev.By, cmd.Call, cmd.ArgsHash)
		was, known := c.remembered[ev.Tool]
		c.must(ev.By != "remembered" || known && !was.granted && was.text == ev.Text, "a denial was remembered that no person gave")
		c.deniedText(cmd, ev)
		c.remember(ev.Remember, ev.Tool, rememberedDecision{text: ev.Text})
		c.must(c.cmd == nil || ev.Remember == cmd.Remember, "remembered what was not to be")
	}
}

func (c *checker) deniedText(cmd messages.Deny, ev messages.ApprovalDenied) {
	if ev.By == "decision" && c.cmd != nil {
		want := messages.DeniedText
		if cmd.Text != nil {
			want = *cmd.Text
		}
		c.must(ev.Text == want, "a denial in other words")
	}
}

// decides checks who decided about a call.
func (c *checker) decides(call *callFacts, decision string, by messages.By, of messages.CallID, hash string) {
	c.must(call.decision == "", "a second decision about a call")
	switch by {
	case "remembered":
		c.must(!call.gated, "a remembered decision about a call that waits for its own")
	case "decision":
		c.must(call.gated, "a decision about a call that does not wait for one")
		c.must(c.cmd == nil || of == call.id && (hash == "" || hash == messages.HashArguments(call.arguments)), "a decision about another call, or other arguments")
	case "timeout":
		due, ok := c.cmd.(turn.TimerDue)
		c.must(call.gated && decision == "denied" && (c.cmd == nil || ok && due.Turn != "" && due.Timer == "approval:"+string(call.id)), "an approval expired before its time")
	default:
		c.must(false, "a decision without an origin")
	}
	call.decision, call.gated = decision, false
}

func (c *checker) remember(really bool, tool string, v rememberedDecision) {
	if really {
		c.remembered[tool] = v
	}
}

// flagged checks that a flag names a call that did the same, or is to.
func (c *checker) flagged(ev messages.ToolFlagged) {
	call := c.result(ev.Call)
	c.must(call.onUnknown == messages.Pause || call.onUnknown == messages.Rerun || c.cmd == nil, "a flag where running twice does not hurt")
	of := doneFact{}
	for _, d := range c.done {
		if d.id == ev.Of {
			of = d
		}
	}
	if earlier := c.open.call(ev.Of); earlier != nil && of.id == "" {
		of = doneFact{earlier.id, earlier.tool, earlier.arguments}
	}
	c.must(of.id != ev.Call && of.tool == ev.Tool && equalJSON(of.arguments, call.arguments), "a flag for a call that repeats nothing")
	call.flagDue = false
	if c.cmd != nil && c.s.env.Definition.Tools[ev.Tool].Repeats {
		call.wants, call.singled = true, true
	}
}

// repeats notes whether a call asks for an effect that there was.
func (c *checker) repeats(call *callFacts) {
	call.flagDue = false
	if call.onUnknown != messages.Pause && call.onUnknown != messages.Rerun || !json.Valid([]byte(call.arguments)) {
		return
	}
	for _, d := range c.done {
		call.flagDue = call.flagDue || d.tool == call.tool && equalJSON(d.arguments, call.arguments)
	}
}

// equalJSON reports whether two texts are the same JSON.
func equalJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	for text, v := range map[string]*any{a: &x, b: &y} {
		dec := json.NewDecoder(bytes.NewReader([]byte(strings.TrimSpace(text))))
		dec.UseNumber()
		if dec.Decode(v) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y)
}
