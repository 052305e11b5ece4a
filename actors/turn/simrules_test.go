package turn_test

import (
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// checker knows from the events alone what is allowed, and holds them against
// the commands and outcomes that led to them. It shares nothing with the
// machine.
type checker struct {
	s      *sim
	n      messages.EventNumber
	cmd    any // that led to the event; nil: unknown
	inputs map[string]*inputFacts
	queue  []string // accepted inputs that wait for their turn, by age
	open   *openTurn
	ended  *openTurn // the newest that ended; nil once the agent was cleared
	gone   bool      // deleted
	// ends are what was stored for others before the tombstone.
	ends []messages.Command
	keys map[string]messages.CallID
	// starting is the input whose turn must begin next.
	starting string
	// requeued are the inputs that left the turn in this segment.
	requeued   int
	remembered map[string]rememberedDecision
	done       []doneFact // effects of the turn and those it continues
	used       projections.Use
	raised     messages.Limits
	schedules  scheduleFacts
	summary    summaryFacts
	// stopping are the children that are to end, children all there ever were, tasks
	// the inputs that other agents gave.
	stopping, children map[string]bool
	tasks              map[string]*taskFacts
	passed             map[string]messages.ChildDecided // decisions that went down, by id
}

type inputFacts struct {
	n     messages.EventNumber
	ended int
}

// openTurn is a turn without its terminal event.
type openTurn struct {
	id     messages.TurnID
	inputs []string
	fresh  []string // that no model was asked about: those it began with
	unseen []string // and those that steered it
	steps  int
	limits messages.Limits
	used   projections.Use
	usage  messages.Usage
	choice string
	acted  bool // a tool was asked for, in an answer that was not cut off
	// news reports whether the history has an input, or an item of an answer, that no
	// answer of a model came after.
	news bool

	model    *modelFacts // without an answer
	switched string
	reserved *messages.BudgetReserved
	answered bool // the newest step has an answer
	final    bool // that asks for nothing more
	cut      bool // that was cut off
	output   string
	calls    []*callFacts
	ids      map[messages.CallID]bool
	timers   map[string]messages.TimerSet

	paused    string
	exhausted string
	held      bool // a hook wants a person
	finish    bool // a hook ends the turn
	hooked    bool // any hook has decided anything
	failed    bool // a hook broke where that ends the turn
	asked     map[turn.Point]int
	admitted  int               // inputs that a model was shown
	before    []messages.TurnID // that it continues
	shown     int               // inputs of those
	steers    int               // since a model was asked
	reason    string            // why it failed
	depth     int               // how many callers are above
}

func newChecker(s *sim) checker {
	return checker{s: s, inputs: map[string]*inputFacts{}, keys: map[string]messages.CallID{}, remembered: map[string]rememberedDecision{},
		stopping: map[string]bool{}, children: map[string]bool{}, tasks: map[string]*taskFacts{}, passed: map[string]messages.ChildDecided{}}
}

func (c *checker) must(ok bool, what string) {
	if !ok {
		c.s.fail("at event %d: %s", c.n, what)
	}
}

// segment holds what followed from one command or outcome against everything
// before it.
func (c *checker) segment(cmd any, first messages.EventNumber, events []messages.Event) {
	if c.s.blind {
		return
	}
	c.cmd, c.requeued = cmd, 0
	for i, ev := range events {
		c.n = first + messages.EventNumber(i)
		if c.s.verbose {
			c.s.note("  %d %s%s", c.n, ev.EventType(), turntest.EventText(ev))
		}
		if !c.deleted(ev, len(events) == 1) {
			c.event(ev)
		}
		c.order(ev, events[i+1:])
	}
	c.starts(events)
}

// order checks what must stand behind an event, or must not.
func (c *checker) order(ev messages.Event, rest []messages.Event) {
	switch ev := ev.(type) {
	case messages.ModelRequested, messages.AgentCleared:
		c.must(len(rest) == 0 || c.cmd == nil, "something follows on what ends a decision")
	case messages.BudgetReserved:
		_, ok := next(rest).(messages.ModelRequested)
		c.must(ok, "a reservation without a model call behind it")
	case messages.ApprovalDenied:
		d, ok := next(rest).(messages.ToolDenied)
		c.must(ok && d.Call == ev.Call && d.Message == ev.Text, "a denial that the model does not read")
	case messages.InputRequeued:
		switch next(rest).(type) {
		case messages.InputRequeued, messages.TurnCompleted, messages.TurnFailed, messages.TimerCancelled:
		default:
			c.must(false, "an input was requeued and its turn continues")
		}
	}
}

func next(rest []messages.Event) messages.Event {
	if len(rest) == 0 {
		return nil
	}
	return rest[0]
}

// starts checks what a decision must not leave behind.
func (c *checker) starts(events []messages.Event) {
	if len(events) == 0 || c.cmd == nil {
		return
	}
	c.schedules.whole(c)
	c.must(c.starting == "", "an input was accepted as started and its turn was not")
	o := c.open
	if o == nil {
		return
	}
	c.must(o.reserved == nil, "a reservation without a model call")
	c.must(c.requeued == 0 || !slices.Contains(o.inputs, ""), "an input was requeued and its turn continues")
	for _, call := range o.calls {
		c.must(!call.flagDue, "a repeated effect was not flagged")
	}
}

// event holds the next event against those before it.
func (c *checker) event(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputAccepted:
		c.accepted(ev)
	case messages.InputRequeued, messages.InputCancelled, messages.InputDropped:
		c.inputEvent(ev)
	case messages.AgentCleared:
		c.cleared()
	case messages.ApprovalForgotten:
		_, known := c.remembered[ev.Tool]
		c.must(known, "forgot what was not remembered")
		delete(c.remembered, ev.Tool)
	case messages.BudgetRaised:
		c.limitsRaised(ev)
	case messages.TimerSet, messages.TimerFired, messages.TimerCancelled:
		if turnOf(ev) == "" {
			c.scheduleEvent(ev)
			return
		}
		c.turnEvent(ev)
	case messages.CompactionRequested, messages.CompactionFailed, messages.HistoryCompacted:
		c.compactionEvent(ev)
	case messages.AgentConfigured, messages.StatePatched, messages.CommandNoop:
	case messages.TurnStarted:
		c.started(ev)
	case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
		c.must(c.open != nil, "an end of no turn")
		c.turnEnd(ev)
	default:
		if c.familyEvent(ev) {
			return
		}
		c.turnEvent(ev)
	}
}

func (c *checker) turnEvent(ev messages.Event) {
	c.must(c.open != nil, "an event of no turn")
	c.must(turnOf(ev) == c.open.id, "an event of another turn")
	c.inTurn(ev)
}

func (c *checker) accepted(ev messages.InputAccepted) {
	_, known := c.inputs[ev.Input]
	c.must(!known, "an input was accepted twice")
	c.inputs[ev.Input] = &inputFacts{n: c.n}
	brought := c.schedules.came(c, ev)
	due, ok := c.cmd.(turn.TimerDue)
	c.must(brought || !ok || due.Turn != "", "an input came that no timer brought")
	c.must((ev.Disposition == messages.Started) == (c.open == nil && len(c.queue) == 0 || c.open == nil && ev.Policy == messages.PolicyInterrupt && ev.Disposition == messages.Started), "the disposition is wrong")
	waiting := len(c.queue)
	if c.open != nil {
		waiting += len(c.open.unseen)
	}
	if in, ok := c.cmd.(messages.Input); ok {
		c.must(in.ID == ev.Input && in.Policy == ev.Policy, "another input was accepted")
		c.must(waiting < c.s.env.Definition.MaxQueue || in.Policy == messages.PolicyInterrupt, "the queue is longer than it may be")
		c.must(in.Deadline == nil || c.s.env.Now.Before(*in.Deadline), "an input was accepted after its deadline")
	}
	if t, ok := c.cmd.(messages.Task); ok {
		c.must(t.ID == ev.Input && ev.Parent != nil && ev.Parent.Call == t.Parent.Call, "another task was accepted")
	}
	if ev.Parent != nil {
		c.must(c.tasks[ev.Input] == nil, "a task began that was taken back")
		c.tasks[ev.Input] = &taskFacts{parent: *ev.Parent}
	}
	switch ev.Disposition {
	case messages.Started:
		c.starting = ev.Input
		c.queue = append(c.queue, ev.Input)
	case messages.Queued:
		c.must(ev.Policy == "" || ev.Policy == messages.PolicyQueue || c.open == nil, "an input was queued against its policy")
		c.queue = append(c.queue, ev.Input)
	case messages.Steered:
		c.must(ev.Policy == messages.PolicySteer && ev.Turn == c.open.id, "an input steered against its policy, or another turn")
		c.open.steers++
		c.open.unseen, c.open.inputs = append(c.open.unseen, ev.Input), append(c.open.inputs, ev.Input)
	}
}

// inputEvent is an input that leaves where it waits.
func (c *checker) inputEvent(ev messages.Event) {
	switch ev := ev.(type) {
	case messages.InputRequeued:
		c.must(c.open != nil && c.open.id == ev.Turn && slices.Contains(c.open.unseen, ev.Input), "requeued what had not steered, or was seen")
		c.requeued++
		c.leaves(ev.Input)
		c.queue = append(c.queue, ev.Input)
		slices.SortStableFunc(c.queue, func(a, b string) int { return int(c.inputs[a].n) - int(c.inputs[b].n) })
	case messages.InputCancelled:
		w, ok := c.cmd.(messages.Cancel)
		back, recalled := c.cmd.(messages.CancelChild)
		c.must(c.cmd == nil || ok && (w.All || w.Input == ev.Input) || recalled && back.Input == ev.Input, "cancelled without a command")
		c.leaves(ev.Input)
		c.inputEnds(ev.Input)
		c.taskEnds(ev.Input, ev)
	case messages.InputDropped:
		_, cleared := c.cmd.(messages.Clear)
		_, deleted := c.cmd.(messages.Delete)
		c.must(c.cmd == nil || cleared && ev.By == "clear" || deleted && ev.By == "delete", "dropped without a word")
		c.leaves(ev.Input)
		c.inputEnds(ev.Input)
		c.taskEnds(ev.Input, ev)
	}
}

func (c *checker) leaves(id string) {
	if i := slices.Index(c.queue, id); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
		return
	}
	o := c.open
	c.must(o != nil && slices.Contains(o.unseen, id), "an input left where it was not")
	is := func(x string) bool { return x == id }
	o.unseen, o.inputs = slices.DeleteFunc(o.unseen, is), slices.DeleteFunc(slices.Clone(o.inputs), is)
}

func (c *checker) inputEnds(id string) {
	in := c.inputs[id]
	c.must(in != nil, "an input ended that was never accepted")
	in.ended++
	c.must(in.ended == 1, "an input ended twice")
}

func (c *checker) cleared() {
	c.must(len(c.schedules.set) == 0, "cleared while inputs are scheduled")
	c.must(c.open == nil && len(c.queue) == 0, "cleared while something runs or waits")
	c.ended, c.done, c.remembered = nil, nil, map[string]rememberedDecision{}
	if c.cmd != nil {
		live := c.s.live
		c.must(live.History.Len() == 0 && string(live.Data.JSON()) == "{}" && len(live.Decisions.List) == 0 && live.Ended == nil, "a cleared agent is not what it was when it was created")
	}
}

func (c *checker) limitsRaised(ev messages.BudgetRaised) {
	_, ok := c.cmd.(messages.Resume)
	c.must(c.cmd == nil || ok, "a limit was raised without a word")
	c.must(ev.Limits != (messages.Limits{}), "nothing was raised")
	if ev.Scope == "agent" {
		c.raised = c.raised.Override(ev.Limits)
	} else {
		c.must(c.open != nil && c.open.id == ev.Turn, "a limit of no turn was raised")
		c.open.limits = c.open.limits.Override(ev.Limits)
	}
	if o := c.open; o != nil {
		o.asked = map[turn.Point]int{} // a person came between
		for name, raised := range map[string]bool{
			"max_steps": ev.Limits.MaxSteps != 0, "max_tokens": ev.Limits.MaxTokens != 0,
			"max_cost": ev.Limits.MaxCost != 0, "max_duration": ev.Limits.MaxDuration != 0,
		} {
			if raised && o.exhausted == name {
				o.exhausted = ""
			}
		}
	}
}

func (c *checker) started(ev messages.TurnStarted) {
	c.must(c.open == nil, "two turns at once")
	o := &openTurn{
		id: ev.Turn, inputs: slices.Clone(ev.Inputs), fresh: ev.Inputs, steps: ev.Steps, limits: ev.Limits, choice: ev.ToolChoice,
		ids: map[messages.CallID]bool{}, timers: map[string]messages.TimerSet{}, asked: map[turn.Point]int{},
	}
	o.limits.MaxSteps = ev.MaxSteps
	c.must(ev.MaxSteps > 0, "a turn without a limit of steps")
	c.must(ev.Turn == messages.TurnID(fmt.Sprint("t", c.n)), "a turn is not named by its event")
	if ev.Continues != "" {
		c.continues(ev, o)
	} else {
		c.must(len(ev.Inputs) == 1, "a turn of no input")
		o.news = true
		first := c.starting
		if first == "" && len(c.queue) > 0 {
			first = c.queue[0]
		}
		c.must(ev.Inputs[0] == first, "not the turn of the input whose turn it is")
		c.leaves(first)
		c.done = nil
		if t := c.tasks[first]; t != nil && !t.early {
			o.depth = len(t.parent.Above) + 1
			most := t.parent.Limits.MaxTokens
			c.must(most == 0 || o.limits.MaxTokens != 0 && o.limits.MaxTokens <= most, "a task may use more than its parent has left")
		}
	}
	c.starting, c.open = "", o
}

// continues checks a turn that continues one that failed.
func (c *checker) continues(ev messages.TurnStarted, o *openTurn) {
	e := c.ended
	c.must(e != nil && e.id == ev.Continues && e.reason != "", "a turn continues what did not fail, or was cleared")
	c.must(len(ev.Inputs) == 0 && c.starting == "" && len(c.queue) == 0, "a turn continues another while inputs wait")
	steps := e.steps
	if e.model != nil && !e.answered {
		steps-- // its last step has no answer
	}
	c.must(ev.Steps == max(steps, 0) && ev.ToolChoice == e.choice, "a turn does not continue where the other failed")
	o.used, o.acted, o.ids, o.depth, o.news = e.used, e.acted, e.ids, e.depth, e.news
	o.before, o.shown = append(slices.Clip(e.before), e.id), e.shown+len(e.inputs)
}

// turnEnd closes the turn: every call has its result, every input its end,
// every timer and reservation too.
func (c *checker) turnEnd(ev messages.Event) {
	o := c.open
	for _, id := range o.inputs {
		c.taskEnds(id, ev)
	}
	switch ev := ev.(type) {
	case messages.TurnCompleted:
		c.over(ev.Turn, ev.Inputs, ev.Steps, ev.Usage)
		c.completed(ev)
		c.must(len(o.unseen) == 0, "a turn ended with a steered input that no model has seen")
		c.done = nil
	case messages.TurnFailed:
		c.over(ev.Turn, ev.Inputs, ev.Steps, ev.Usage)
		c.must(len(o.unseen) == 0, "a turn ended with a steered input that no model has seen")
		c.must(ev.Reason != "", "a turn failed without a reason")
		c.must(ev.Reason != "hook" || o.failed, "a turn failed by a hook that did not")
		refused := o.model != nil && !o.answered && o.model.refused != ""
		c.must(c.cmd == nil || ev.Withheld == 0 || refused, "something is withheld that no model refused")
		c.must(c.cmd == nil || ev.Withheld != 0 || !refused || !o.news, "what a model refused is not withheld")
		o.reason = ev.Reason
	case messages.TurnAborted:
		c.over(ev.Turn, ev.Inputs, ev.Steps, ev.Usage)
		c.aborted(ev)
		c.done = nil
	}
	c.ended, c.open = o, nil
}

func (c *checker) over(id messages.TurnID, inputs []string, steps int, usage messages.Usage) {
	o := c.open
	c.must(o.id == id && slices.Equal(o.inputs, inputs), "a terminal event of another turn, or of other inputs")
	for _, call := range o.calls {
		c.must(call.settled, "a turn ended with a call that has no result")
	}
	c.must(steps == o.steps, "the steps are miscounted")
	c.must(usage == o.usage, "the usage is miscounted")
	c.must(len(o.timers) == 0, "a timer outlives its turn")
	c.must(o.model == nil || o.model.reserved == nil, "a turn ended with a reservation that is not settled")
	c.must(c.summary.asked == nil || c.summary.asked.Turn != id, "a turn ended that waits for a summary")
	for _, id := range inputs {
		c.inputEnds(id)
	}
}

func (c *checker) aborted(ev messages.TurnAborted) {
	ok, noted := true, false
	switch cmd := c.cmd.(type) {
	case nil:
		return
	case messages.Interrupt:
		ok, noted = ev.By == "interrupt" && (cmd.Turn == "" || cmd.Turn == ev.Turn), true
	case messages.Abort:
		ok = ev.By == "abort" && (cmd.Turn == "" || cmd.Turn == ev.Turn)
	case messages.Clear:
		ok = ev.By == "clear"
	case messages.CancelChild:
		ok = ev.By == "cancel_child"
	case turn.TimerDue:
		ok, noted = cmd.Turn == "" && ev.By == "input" && c.schedules.policy == messages.PolicyInterrupt, true
	case messages.Delete:
		ok = ev.By == "delete"
	case messages.Input:
		ok, noted = ev.By == "input" && cmd.Policy == messages.PolicyInterrupt, true
	default:
		ok = false
	}
	c.must(ok, "a turn was stopped without a command")
	c.must(noted == (ev.Note != ""), "a note of an abort, or an interrupt without one")
}

// completed checks that a turn had an answer, and that a steered input was left
// to the queue only if no model may be called.
func (c *checker) completed(ev messages.TurnCompleted) {
	o := c.open
	stopped, output := o.final, o.output
	for _, call := range o.calls {
		if !stopped && call.completed && c.s.env.Definition.Tools[call.tool].Stop {
			stopped, output = true, call.output
		}
	}
	c.must(o.finish || stopped || o.hooked || c.cmd == nil, "a turn completed without an answer")
	c.must(o.paused == "" && (o.model == nil || !o.model.underWay && !o.model.waiting), "a turn completed while it was paused or a model was asked")
	c.must(o.hooked || c.cmd == nil || ev.Output == output, "a turn completed with another answer")
	if c.requeued > 0 && !o.hooked && c.cmd != nil {
		c.must(!c.mayRequest(), "a steered input was requeued though another model call may be made")
	}
}

// drained checks that every accepted input has ended.
func (c *checker) drained() {
	c.must(c.open == nil && len(c.queue) == 0, "something waits at rest")
	c.must(len(c.stopping) == 0, "a child runs on at rest")
	c.must(len(c.passed) == 0, "the effect of a decision is not known at rest")
	for id, t := range c.tasks {
		if !t.over && !t.parent.Detached {
			c.s.fail("at rest: the end of a task was not reported to its parent\n%s", id)
		}
	}
	for id, in := range c.inputs {
		if in.ended != 1 {
			c.s.fail("at rest: an input has no terminal event\n%s", id)
		}
	}
}

// turnOf is the turn that an event names.
func turnOf(ev messages.Event) messages.TurnID {
	switch ev := ev.(type) {
	case messages.ModelRequested:
		return ev.Turn
	case messages.ModelCompleted:
		return ev.Turn
	case messages.ToolRequested:
		return ev.Turn
	case messages.ToolStarted:
		return ev.Turn
	case messages.ToolCompleted:
		return ev.Turn
	case messages.ToolFailed:
		return ev.Turn
	case messages.ToolDenied:
		return ev.Turn
	case messages.ToolSkipped:
		return ev.Turn
	case messages.ApprovalRequested:
		return ev.Turn
	case messages.ApprovalGranted:
		return ev.Turn
	case messages.TimerSet:
		return ev.Turn
	case messages.TimerFired:
		return ev.Turn
	case messages.TimerCancelled:
		return ev.Turn
	}
	return otherTurnOf(ev)
}

func otherTurnOf(ev messages.Event) messages.TurnID {
	switch ev := ev.(type) {
	case messages.TurnPaused:
		return ev.Turn
	case messages.TurnResumed:
		return ev.Turn
	case messages.ModelFailed:
		return ev.Turn
	case messages.ModelRestarted:
		return ev.Turn
	case messages.ModelSwitched:
		return ev.Turn
	case messages.ToolUnknown:
		return ev.Turn
	case messages.ToolFlagged:
		return ev.Turn
	case messages.ApprovalDenied:
		return ev.Turn
	case messages.BudgetReserved:
		return ev.Turn
	case messages.BudgetSettled:
		return ev.Turn
	case messages.BudgetExhausted:
		return ev.Turn
	case messages.HookDecided:
		return ev.Turn
	case messages.ChildSpawned:
		return ev.Turn
	case messages.ChildWaiting:
		return ev.Turn
	case messages.ChildResumed:
		return ev.Turn
	case messages.ChildDecided:
		return ev.Turn
	case messages.ChildCompleted:
		return ev.Turn
	case messages.ChildFailed:
		return ev.Turn
	case messages.ChildAborted:
		return ev.Turn
	}
	return ""
}
