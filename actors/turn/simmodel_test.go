package turn_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// modelFacts is a model call that has no answer.
type modelFacts struct {
	call     messages.CallID
	model    string
	attempt  int
	underWay bool
	waiting  bool // for the time of its next attempt
	failures int  // of this model
	restarts int
	fatal    bool                  // it is not tried again: only another model can take over
	refused  messages.ModelFailure // the first kind that was about the request
	newest   messages.ModelFailure // the kind of the newest failure
	shorter  bool                  // the history was compacted because the request was too long
	reserved *messages.BudgetReserved
}

func (c *checker) modelEvent(ev messages.Event) {
	o := c.open
	if ev, ok := ev.(messages.ModelRequested); ok {
		c.modelRequested(ev)
		return
	}
	m := o.model
	c.must(m != nil, "something became of a model call that was not made")
	switch ev := ev.(type) {
	case messages.ModelCompleted:
		c.must(ev.Call == m.call && m.underWay && ev.Step == o.steps, "an answer that was not awaited")
		c.uses(ev.Usage, ev.Cost, m)
		m.underWay, o.answered, o.news = false, true, len(ev.Items) > 0
		o.final, o.output = finalText(ev.Items)
		o.cut = messages.CutOff(ev.Finish)
	case messages.ModelFailed:
		c.must(ev.Call == m.call && m.underWay && ev.Attempt == m.attempt, "a failure that was not awaited")
		c.uses(ev.Usage, ev.Cost, m)
		m.underWay, m.waiting, m.fatal = false, ev.RetryAt != nil, ev.RetryAt == nil
		if m.newest = ev.Kind; ev.Kind != "network" {
			m.refused = cmp.Or(m.refused, ev.Kind)
		}
		if m.failures++; m.waiting && c.cmd != nil {
			c.must(m.failures < c.s.env.Definition.MaxAttempts, "more attempts than there may be")
		}
	case messages.ModelRestarted:
		_, ok := c.cmd.(turn.Recover)
		c.must(ev.Call == m.call && m.underWay && (ok || c.cmd == nil), "a restart of nothing")
		m.underWay = false
		m.restarts++
		c.must(m.restarts <= 11, "a model call was lost forever")
	case messages.ModelSwitched:
		c.must(m.fatal && ev.From == m.model && ev.From != ev.To, "a switch from a model that can be tried again")
		c.must(c.cmd == nil || slices.Contains(c.s.env.Definition.Fallbacks, ev.To), "a switch to no fallback")
		m.failures, m.fatal, m.shorter, o.switched = 0, false, false, ev.To
	}
}

// finalText is the text of an answer without calls.
func finalText(items []messages.Item) (bool, string) {
	var text []string
	for _, item := range items {
		if item.Type == messages.ItemCall {
			return false, ""
		}
		text = append(text, item.Content.Text())
	}
	return true, strings.Join(text, "\n")
}

func (c *checker) modelRequested(ev messages.ModelRequested) {
	o := c.open
	c.must(o.paused == "" && !o.held && !o.finish && o.exhausted == "", "a model was asked in a turn that is paused, held or ended")
	c.must(o.count(open) == 0, "a model was asked before every call had its result")
	c.must(ev.Call == messages.CallID(fmt.Sprint("m", c.n)), "a model call is not named by its event")
	c.step(ev)
	c.within(ev)
	c.chooses(ev)
	c.admits(ev)
	o.news = o.news || len(ev.Inputs) > 0
	if o.admitted += len(ev.Inputs); c.cmd != nil {
		c.request(ev)
		c.sees()
	}
	o.steers = 0
	o.calls, o.answered, o.final, o.asked = nil, false, false, map[turn.Point]int{}
}

// step counts.
func (c *checker) step(ev messages.ModelRequested) {
	o := c.open
	m := &modelFacts{call: ev.Call, model: ev.Model, attempt: ev.Attempt, underWay: true, reserved: o.reserved}
	if o.model == nil || o.answered {
		o.steps++
		c.used.Steps++
		c.must(ev.Step == o.steps && ev.Attempt == 1, "the steps are miscounted")
	} else {
		was := o.model
		c.must(!was.underWay && !was.waiting && !was.fatal && was.reserved == nil, "a second model call at once")
		c.must(ev.Step == o.steps && ev.Attempt == was.attempt+1, "the steps or attempts are miscounted")
		m.failures, m.restarts, m.refused, m.shorter = was.failures, was.restarts, was.refused, was.shorter
	}
	o.model, o.reserved = m, nil
}

// within checks that no limit is exceeded by what was just begun.
func (c *checker) within(ev messages.ModelRequested) {
	o := c.open
	agent := c.agentLimits()
	need := projections.Use{}
	if r := o.model.reserved; r != nil {
		need = projections.Use{Tokens: r.Tokens, Cost: r.Cost}
		c.must(r.Step == ev.Step, "a reservation for another step")
	}
	c.must(o.steps <= o.limits.MaxSteps, "more steps than there may be")
	c.must(agent.MaxSteps == 0 || c.used.Steps <= agent.MaxSteps, "the agent makes more steps than it may")
	for _, l := range [...]struct {
		limits messages.Limits
		used   projections.Use
	}{{o.limits, o.used}, {agent, c.used}} {
		limited := l.limits.MaxTokens != 0 || l.limits.MaxCost != 0
		c.must(!limited || o.model.reserved != nil, "a model was asked without a reservation")
		c.must(l.limits.MaxTokens == 0 || l.used.Tokens+need.Tokens <= l.limits.MaxTokens, "more tokens than there may be")
		c.must(l.limits.MaxCost == 0 || l.used.Cost+need.Cost <= l.limits.MaxCost, "a higher cost than there may be")
		c.must(l.limits.MaxDuration == 0 || l.used.Duration < l.limits.MaxDuration, "a turn runs longer than it may")
	}
}

// agentLimits are those in force; none if the definition is not known.
func (c *checker) agentLimits() messages.Limits {
	if c.cmd == nil {
		return messages.Limits{}
	}
	return c.s.env.Definition.AgentLimits.Override(c.raised)
}

// mayRequest reports whether the limits that are known here allow another step.
func (c *checker) mayRequest() bool {
	o := c.open
	agent := c.agentLimits()
	for _, l := range [...]messages.Limits{o.limits, agent} {
		if l.MaxTokens != 0 || l.MaxCost != 0 || l.MaxDuration != 0 {
			return false // it may not, or that is not known here
		}
	}
	return o.exhausted == "" && o.steps < o.limits.MaxSteps && (agent.MaxSteps == 0 || c.used.Steps < agent.MaxSteps)
}

// chooses checks the model and what it is made to do.
func (c *checker) chooses(ev messages.ModelRequested) {
	o, def := c.open, c.s.env.Definition
	c.must(ev.ToolChoice == "" || ev.ToolChoice == "none" || !o.acted, "a tool was forced after the first use")
	c.must(ev.ToolChoice == "" || ev.ToolChoice == o.choice, "another choice was forced than wanted")
	if c.cmd == nil {
		return
	}
	_, known := def.Tools[o.choice]
	known = known || o.choice == "required" && len(def.Tools) > 0 || o.choice == "none"
	forced := o.choice != "" && known && (o.choice == "none" || !o.acted)
	c.must(forced == (ev.ToolChoice != ""), "a choice was not forced that was wanted")
	want := def.Model
	if o.switched != "" && slices.Contains(def.Fallbacks, o.switched) {
		want = o.switched
	}
	c.must(ev.Model == want && ev.Definition == def.Digest, "another model was asked, or by another definition")
}

// admits checks that each input comes in once, and in order.
func (c *checker) admits(ev messages.ModelRequested) {
	o := c.open
	want := append(slices.Clone(o.fresh), o.unseen...)
	if _, hooks := c.cmd.(turn.HooksAsked); !hooks && c.cmd != nil {
		c.must(slices.Equal(ev.Inputs, want), "not the inputs that no model has seen")
		o.fresh, o.unseen = nil, nil
		return
	}
	rest := want
	for _, id := range ev.Inputs { // hooks have made a request that need not hold all
		i := slices.Index(rest, id)
		c.must(i >= 0, "an input was admitted twice, or out of order")
		rest = rest[i+1:]
		o.unseen = slices.DeleteFunc(o.unseen, func(x string) bool { return x == id })
	}
	c.must(len(ev.Inputs) >= len(o.fresh), "a turn began without its input")
	o.fresh = nil
}

// request checks what the model is about to be given: after the calls of an
// answer come their results, in the same order, and nothing before them.
func (c *checker) request(ev messages.ModelRequested) {
	h := &c.s.live.History
	if ev.Request != "rewritten" {
		parts := []string{ev.Definition, ev.Instructions}
		if ev.ToolChoice != "" {
			parts = append(parts, ev.ToolChoice)
		}
		c.must(ev.Request == string(h.Digest(parts...)), "the request's digest is not of the history")
	}
	var calls []messages.CallID
	for _, item := range h.Items() {
		switch item.Type {
		case messages.ItemCall:
			calls = append(calls, item.CallID)
		case messages.ItemCallOutput:
			c.must(len(calls) > 0 && calls[0] == item.CallID, "a result out of order")
			calls = calls[1:]
		default:
			c.must(len(calls) == 0 || item.Role == messages.RoleAssistant, "an orphan call")
		}
	}
	c.must(len(calls) == 0, "an orphan call")
}

// uses counts what a call has used.
func (c *checker) uses(u messages.Usage, cost messages.Cost, m *modelFacts) {
	o := c.open
	o.usage = o.usage.Add(u)
	c.count(u.Input+u.Output, cost, 0)
	if c.cmd != nil {
		p := c.s.env.Definition.Prices[m.model]
		want := messages.Cost(int64(u.Input)*int64(p.Input*1000) + int64(u.Output)*int64(p.Output*1000))
		c.must(cost == want, "a wrong cost")
	}
}

func (c *checker) count(tokens int, cost messages.Cost, ran int64) {
	for _, u := range [...]*projections.Use{&c.open.used, &c.used} {
		u.Tokens, u.Cost, u.Duration = u.Tokens+tokens, u.Cost+cost, u.Duration+ran
	}
}

func (c *checker) budgetEvent(ev messages.Event) {
	o := c.open
	switch ev := ev.(type) {
	case messages.BudgetReserved:
		c.must(o.reserved == nil, "a second reservation for one call")
		o.reserved = &ev
	case messages.BudgetSettled:
		m := o.model
		c.must(m != nil && m.reserved != nil && m.call == ev.Call, "a reservation was settled twice, or there was none")
		if ev.Unknown {
			c.must(ev.Tokens == m.reserved.Tokens && ev.Cost == m.reserved.Cost, "a lost call counts as something else than its reservation")
			c.count(ev.Tokens, ev.Cost, 0)
		}
		m.reserved = nil
	case messages.BudgetExhausted:
		c.must(o.exhausted == "", "a limit was reached twice")
		o.exhausted = string(ev.Limit)
	}
}

func (c *checker) timerEvent(ev messages.Event) {
	o := c.open
	switch ev := ev.(type) {
	case messages.TimerSet:
		_, known := o.timers[ev.Timer]
		c.must(!known, "a timer was set twice")
		c.timerSet(ev)
		o.timers[ev.Timer] = ev
	case messages.TimerFired:
		due, ok := c.cmd.(turn.TimerDue)
		_, back := c.cmd.(turn.Recover) // which looks whether the turn's time is over
		late := back && ev.Timer == "duration" && !c.s.env.Now.Before(o.timers[ev.Timer].At)
		c.must(c.cmd == nil || ok && due.Turn == ev.Turn && due.Timer == ev.Timer || late, "a timer fired by itself")
		c.timerOver(ev.Timer, ev.Ran)
	case messages.TimerCancelled:
		c.timerOver(ev.Timer, ev.Ran)
	}
}

func (c *checker) timerSet(ev messages.TimerSet) {
	o := c.open
	switch ev.For {
	case "retry":
		c.must(o.model != nil && o.model.waiting && ev.Call == o.model.call, "a timer for a retry that there is not")
	case "approval":
		call := o.call(ev.Call)
		c.must(call != nil && call.gated, "a timer for an approval that was not requested")
	case "duration":
		c.must(ev.Call == "", "a clock of a call")
	default:
		c.must(false, "a timer for nothing")
	}
}

func (c *checker) timerOver(id string, ran int64) {
	o := c.open
	tm, known := o.timers[id]
	c.must(known, "a timer fired or was cancelled twice, or was never set")
	c.must(ran == max(c.s.env.Now.Sub(tm.Set), 0).Milliseconds() || c.cmd == nil, "a timer ran for another time")
	delete(o.timers, id)
	switch tm.For {
	case "retry":
		o.model.waiting = false
	case "duration":
		c.count(0, 0, ran)
	}
}

// crashed forgets what only the process knew.
func (c *checker) crashed() {
	if c.open != nil {
		c.open.asked = map[turn.Point]int{}
	}
}

// effects checks that what is to be done in the world is what was intended and
// is still awaited, and that a turn never waits for nothing.
func (c *checker) effects() {
	live, o := c.s.live, c.open
	if c.s.blind {
		return
	}
	c.n = live.Last
	c.must((live.Turn != nil) == (o != nil), "the state has another turn")
	c.must(live.Used == c.used, "the agent's use is miscounted")
	all := live.Effects()
	mine := c.outbox(all)
	owes := len(all) > len(mine)
	effects := c.summary.hold(c, c.schedules.wait(c, live, mine))
	if c.gone {
		c.ending(all)
		return
	}
	if o == nil {
		begins := len(effects) == 1 && effects[0] == turn.Effect{Do: turn.Begin}
		c.must((len(effects) == 0 || begins) && begins == (len(live.Inputs.Queued) > 0) && (begins || owes || c.summary.asked != nil) == live.Open() && (live.Phase() == "running") == begins, "an idle agent has something to do, or inputs wait for it in vain")
		return
	}
	c.must(live.Turn.ID == o.id && live.Turn.Steps == o.steps && live.Turn.Paused() == o.paused, "the state has another turn")
	c.must(live.Turn.Used.Tokens == o.used.Tokens && live.Turn.Used.Cost == o.used.Cost && live.Turn.Used.Duration == o.used.Duration, "the turn's use is miscounted")
	works, intended := 0, len(o.timers)
	for _, call := range o.calls {
		switch {
		case call.running && call.child == nil:
			intended++
		case active(call) && o.paused == "": // it works elsewhere
			works++
		}
	}
	if a := c.summary.asked; a != nil && a.Turn != "" {
		intended++
	}
	if o.model != nil && o.model.underWay {
		intended++
	}
	for _, e := range effects {
		c.must(e.Turn == o.id, "an effect of another turn")
		c.effect(e)
		if e.Do == turn.AskHooks {
			intended++
		}
		if !idle(e) {
			works++
		}
	}
	c.must(intended == len(effects), "an intended effect is not listed, or one is listed twice")
	c.must((o.paused == "") == (works > 0) || c.s.reading, "a turn waits for nothing, or works while it is paused")
	c.must(o.model == nil || o.answered == false || o.model.reserved == nil, "a reservation was not settled")
	_, clock := o.timers["duration"]
	c.must(clock == false || o.paused == "", "a clock runs while a person is awaited")
	due := o.limits.MaxDuration != 0 && o.used.Duration < o.limits.MaxDuration && o.exhausted == "" && o.paused == ""
	c.must(clock || !due, "no clock runs in a turn that may run only so long")
}

func (c *checker) effect(e turn.Effect) {
	o := c.open
	switch e.Do {
	case turn.CallModel:
		c.must(o.model != nil && o.model.underWay && e.Call == o.model.call && e.Attempt == o.model.attempt, "a model call that was not intended")
	case turn.Wait:
		tm, known := o.timers[e.Timer]
		c.must(known && tm.At.Equal(e.Until) && !e.Until.IsZero() && e.Until.Location() == time.UTC, "a wait that was not intended")
	case turn.Summarize:
		c.must(o.idle(), "a turn waits for a summary and works")
	case turn.AskHooks:
		idle := o.count(running) == 0 && (o.model == nil || !o.model.underWay && !o.model.waiting)
		c.must(idle && o.count(open) == 0 && o.paused == "" && o.asked[e.Point] < 2+o.steers, "hooks are asked while something runs, or without end")
		c.must(e.Point != turn.BeforeModel || !o.held && !o.finish, "hooks are asked about a model call in a turn that is held or ended")
	default:
		call := o.call(e.Call)
		c.must(call != nil && call.running && call.attempt == e.Attempt, "a tool that was not started")
		c.must(e.Do == turn.RunTool || call.onUnknown == messages.Reconcile, "a tool was asked what became of a call that does not reconcile")
	}
}
