package turn

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// An agent as a tool. A call of such a tool is started like any other, but runs
// in an agent of its own: tool.started and child.spawned stand in one frame, the
// task goes out as an effect, and the outcome comes as a report, which is a
// command. What is owed to another agent is listed as an effect for as long as
// the log does not say that it has come there, so no crash loses it:
//
//	GiveTask      until the call has its outcome
//	PassDecision  until it is known what became of it (child.settled)
//	TakeTask      until the child has ended (child.stopped)
//	TellParent    until it is stored for the parent (child.reported)

// Stopping is a child that nobody waits for any more and that has not said that
// it has ended.
type Stopping struct {
	Turn         messages.TurnID
	Call         messages.CallID
	Child, Input string
	Reason       string
}

// Letter is a command for another agent.
type Letter struct {
	To      messages.AgentID
	Command messages.Command
	// Stored is the outcome to feed back once the command is stored for its
	// agent. Nil: it is sent again, now and then, until the effect is listed no
	// more.
	Stored any
}

type (
	// TaskGiven says that the task of a detached call is stored for its child.
	TaskGiven struct {
		Call    messages.CallID
		Attempt int
	}
	// ParentTold says that what was so as of event Upto is stored for the parent.
	ParentTold struct {
		Input string
		Upto  messages.EventNumber
	}
)

// Letter is the command that an effect is to send; false if it is no such effect
// or is listed no more.
func (s *State) Letter(self messages.AgentID, e Effect) (Letter, bool) {
	var l Letter
	address := ""
	switch e.Do {
	case GiveTask:
		c := s.childCall(e)
		if c == nil {
			return l, false
		}
		address, l.Command = c.Child.Agent, s.taskOf(self, c)
		if c.Child.Detached {
			l.Stored = TaskGiven{c.ID, c.Attempt}
		}
	case PassDecision:
		for _, ev := range s.Passed {
			if ev.ID == e.ID {
				address, l.Command = ev.Agent, decisionOf(self, ev)
			}
		}
	case TakeTask:
		for _, st := range s.Stopping {
			if st.Turn == e.Turn && st.Call == e.Call {
				caller := messages.Caller{Agent: self.Full(), Turn: st.Turn, Call: st.Call}
				address = st.Child
				l.Command = messages.Recall{ID: messages.RecallID(caller), Input: st.Input, Parent: messages.Parent{Caller: caller}, Reason: st.Reason}
			}
		}
	case TellParent:
		for i := range s.Tasks {
			if task := &s.Tasks[i]; task.Input == e.ID && task.owes() {
				address, l.Command = task.Parent.Agent, s.reportOf(self, task)
				l.Stored = ParentTold{task.Input, task.Changed}
			}
		}
	}
	to, err := messages.ParseAgentID(address)
	l.To = to
	return l, l.Command != nil && err == nil
}

func (s *State) childCall(e Effect) *projections.CallState {
	if t := s.Turn; t != nil && t.ID == e.Turn {
		if c := t.Call(e.Call); c != nil && c.Child != nil && c.Outcome == projections.CallRunning {
			return c
		}
	}
	return nil
}

// taskOf is what a child is given to do: the argument input alone if it is a
// text and there is no other, else the arguments as they are.
func (s *State) taskOf(self messages.AgentID, c *projections.CallState) messages.Task {
	text := c.Arguments
	var fields map[string]json.RawMessage
	var only string
	if json.Unmarshal([]byte(c.Arguments), &fields) == nil && len(fields) == 1 && json.Unmarshal(fields["input"], &only) == nil {
		text = only
	}
	t := s.Turn
	return messages.Task{ID: c.Child.Input, Content: messages.TextContent(text), Parent: messages.Parent{
		Caller: messages.Caller{Agent: self.Full(), Turn: t.ID, Call: c.ID, Detached: c.Child.Detached},
		Above:  t.Callers, Limits: c.Child.Limits,
	}}
}

func decisionOf(self messages.AgentID, ev messages.ChildDecided) messages.Command {
	switch ev.Command {
	case "approve":
		return messages.Approve{ID: ev.ID, Call: ev.Waits, Turn: ev.Of, ArgsHash: ev.ArgsHash, Remember: ev.Remember, Reason: ev.Reason, For: self.Full(), Person: ev.Person}
	case "deny":
		return messages.Deny{ID: ev.ID, Call: ev.Waits, Turn: ev.Of, ArgsHash: ev.ArgsHash, Text: ev.Text, Remember: ev.Remember, Reason: ev.Reason, For: self.Full(), Person: ev.Person}
	}
	return messages.Decide{ID: ev.ID, Call: ev.Waits, Turn: ev.Of, Outcome: ev.Outcome, Result: ev.Result, Reason: ev.Reason, For: self.Full(), Person: ev.Person}
}

// Waits is what the turn and those below it wait for, at most messages.MaxWaits
// of it.
func (s *State) Waits(self messages.AgentID) []messages.Wait {
	list, _ := s.waits(self)
	return list
}

// waits is Waits; more says that there is more.
func (s *State) waits(self messages.AgentID) (list []messages.Wait, more bool) {
	t := s.Turn
	if t == nil {
		return nil, false
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		w := messages.Wait{Agent: self.Full(), Turn: t.ID, Call: c.ID, Tool: c.Tool}
		switch {
		case c.Outcome == projections.CallWaiting:
			w.Kind, w.ArgsHash, w.ExpiresAt = messages.WaitApproval, c.ArgsHash, expiry(c)
		case c.Outcome == projections.CallUnknown:
			w.Kind = messages.WaitUnknown
		case c.ListsBelow():
			list, more = append(list, c.Child.Waiting...), more || c.Child.More
			continue
		default:
			continue
		}
		w.Arguments, w.Cut = short(c.Arguments)
		list = append(list, w)
	}
	switch t.Paused() {
	case "", projections.PausedApproval, projections.PausedUnknown, projections.PausedChild:
	default:
		reason := t.Paused()
		if said := whyPaused(t); said != "" {
			reason += ": " + said
		}
		reason, _ = short(reason)
		list = append(list, messages.Wait{Agent: self.Full(), Turn: t.ID, Kind: messages.WaitPaused, Reason: reason})
	}
	if len(list) > messages.MaxWaits {
		list, more = list[:messages.MaxWaits], true
	}
	return list, more
}

// whyPaused returns what is known of the hook or the limit that has paused the turn.
func whyPaused(t *projections.TurnState) string {
	switch {
	case t.Paused() == projections.PausedHook:
		return t.Held
	case t.Reached != nil:
		return t.Reached.Message
	}
	return ""
}

// expiry returns when a call that waits for approval is denied; nil: never.
func expiry(c *projections.CallState) *time.Time {
	if c.ExpiresAt.IsZero() {
		return nil
	}
	at := c.ExpiresAt
	return &at
}

func short(s string) (text string, cut bool) {
	if len(s) <= messages.MaxWaitText {
		return s, false
	}
	return strings.ToValidUTF8(s[:messages.MaxWaitText], ""), true
}

// owesOthers says that another agent is to be told something.
func (s *State) owesOthers() bool {
	if len(s.Stopping)+len(s.Passed) > 0 || slices.ContainsFunc(s.Tasks, func(t Task) bool { return t.owes() }) {
		return true
	}
	return s.Turn != nil && slices.ContainsFunc(s.Turn.Calls, func(c projections.CallState) bool {
		return c.Outcome == projections.CallRunning && c.Child != nil && c.Child.Detached
	})
}

// childEffects are those about a call that is a child.
func childEffects(list []Effect, c *projections.CallState) []Effect {
	if len(c.Child.Waiting) == 0 {
		list = append(list, Effect{Do: GiveTask, Turn: c.Turn, Call: c.ID, Attempt: c.Attempt})
	}
	return list
}

// letters are the effects that do not belong to the running turn.
func (s *State) letters(list []Effect) []Effect {
	for _, ev := range s.Passed {
		if !s.stops(ev.Turn, ev.Call) {
			list = append(list, Effect{Do: PassDecision, Turn: ev.Turn, Call: ev.Call, ID: ev.ID})
		}
	}
	for _, st := range s.Stopping {
		list = append(list, Effect{Do: TakeTask, Turn: st.Turn, Call: st.Call})
	}
	for i := range s.Tasks {
		if task := &s.Tasks[i]; task.owes() {
			list = append(list, Effect{Do: TellParent, ID: task.Input, N: task.Changed})
		}
	}
	return list
}

// stops says that the child of a call is to stop, and with it what is below: it
// decides nothing more.
func (s *State) stops(turn messages.TurnID, call messages.CallID) bool {
	return slices.ContainsFunc(s.Stopping, func(st Stopping) bool { return st.Turn == turn && st.Call == call })
}

// spawn intends the task of a call, within the bounds of depth, number and
// budget.
func (d *decision) spawn(c *projections.CallState, reason string) {
	t, tool := d.s.Turn, d.env.Definition.Tools[c.Tool]
	limits, why := d.share()
	most := tool.MaxChildren
	if most == 0 {
		most = messages.MaxChildren
	}
	switch {
	case len(t.Callers) >= messages.MaxCallers:
		why = "there are as many agents above this one as may be: do it without asking another"
	case t.Children >= most:
		why = "this turn has asked as many agents as it may: go on without"
	}
	if why != "" {
		d.emit(messages.ToolFailed{Turn: t.ID, Call: c.ID, Kind: "limit", Message: "not asked: " + why})
		return
	}
	caller := messages.Caller{Agent: d.env.Agent.Full(), Turn: t.ID, Call: c.ID}
	child := messages.ChildOf(d.env.Agent, tool.Child, t.ID, c.ID)
	ev := messages.ToolStarted{
		Turn: t.ID, Call: c.ID, Tool: c.Tool, Key: d.env.Agent.Full() + "/" + string(t.ID) + "/" + string(c.ID),
		Attempt: c.Attempt + 1, Reason: reason,
	}
	if c.Rewritten {
		ev.Arguments = c.Arguments
	}
	d.emit(ev)
	d.emit(messages.ChildSpawned{
		Turn: t.ID, Call: c.ID, Tool: c.Tool, Child: child.Full(), Input: messages.TaskID(caller), Limits: limits, Detached: tool.Detached,
	})
}

// share is what the next child may use: what is left to the turn and to the
// agent, in equal parts for all children that are about to begin. Time is not
// divided: they run side by side. why is said if nothing is left.
func (d *decision) share() (share messages.Limits, why string) {
	t := d.s.Turn
	among, out := 0, projections.Use{}
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Outcome == projections.CallRequested && d.env.Definition.Tools[c.Tool].Child != "" {
			among++
		}
		if c.Outcome == projections.CallRunning && c.Child != nil {
			out = out.Add(projections.Use{Tokens: c.Child.Limits.MaxTokens, Cost: c.Child.Limits.MaxCost})
		}
	}
	among = max(among, 1)
	ran := int64(0)
	if tm := d.s.Timers.OfTurn(projections.DurationTimer); tm != nil {
		ran = d.ran(tm)
	}
	for _, l := range [...]struct {
		limits messages.Limits
		used   projections.Use
	}{{t.Limits, t.Used.Add(out)}, {d.agentLimits(), d.s.Used.Add(out)}} {
		m, left := l.limits, messages.Limits{}
		if m.MaxTokens != 0 {
			if left.MaxTokens = (m.MaxTokens - l.used.Tokens) / among; left.MaxTokens <= 0 {
				return share, "nothing is left of the budget of tokens (max_tokens)"
			}
		}
		if m.MaxCost != 0 {
			if left.MaxCost = (m.MaxCost - l.used.Cost) / messages.Cost(among); left.MaxCost <= 0 {
				return share, "nothing is left of the budget of money (max_cost)"
			}
		}
		if m.MaxDuration != 0 {
			left.MaxDuration = max(m.MaxDuration-l.used.Duration-ran, 1)
		}
		share = tighter(share, left)
	}
	return share, ""
}

// tighter is the lower of each limit.
func tighter(a, b messages.Limits) messages.Limits {
	return messages.Limits{
		MaxSteps:  lower(a.MaxSteps, b.MaxSteps),
		MaxTokens: lower(a.MaxTokens, b.MaxTokens), MaxCost: lower(a.MaxCost, b.MaxCost), MaxDuration: lower(a.MaxDuration, b.MaxDuration),
	}
}

func lower[N int | int64 | messages.Cost](a, b N) N {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Awaits says that a report is of a child that a call waits for, and newer than what
// is known.
func (s *State) Awaits(r messages.Report) bool {
	c := s.childCall(Effect{Turn: r.Turn, Call: r.Call})
	return c != nil && c.Child.Agent == r.Child && !c.Child.Detached && r.N > c.Child.N
}

// report hears what became of a child.
func (d *decision) report(c messages.Report) error {
	for _, st := range d.s.Stopping {
		if st.Turn != c.Turn || st.Call != c.Call || st.Child != c.Child {
			continue
		}
		if !c.What.Ends() {
			return d.noop(c, "call %q of turn %s is not awaited any more", c.Call, c.Turn)
		}
		d.emit(messages.ChildStopped{Turn: c.Turn, Call: c.Call, Child: c.Child, N: c.N, How: string(c.What), Spent: c.Spent})
		return nil
	}
	call := d.s.childCall(Effect{Turn: c.Turn, Call: c.Call})
	switch {
	case call == nil || call.Child.Agent != c.Child || call.Child.Detached:
		return d.noop(c, "call %q of turn %s is not awaited", c.Call, c.Turn)
	case c.N <= call.Child.N && c.What != messages.ReportRefused:
		return d.noop(c, "something newer is known of child %s", c.Child)
	case d.env.Definition.Unknown:
		return d.unknown()
	}
	d.told(call, c)
	return nil
}

// told goes on with what a child has said.
func (d *decision) told(call *projections.CallState, c messages.Report) {
	t := d.s.Turn
	switch c.What {
	case messages.ReportWaiting:
		d.emit(messages.ChildWaiting{Turn: t.ID, Call: call.ID, Child: c.Child, N: c.N, Waiting: c.Waiting, More: c.More, Busy: c.Busy})
		if c.Busy {
			d.unpause("a child goes on")
		}
		d.advance()
	case messages.ReportGoing:
		d.emit(messages.ChildResumed{Turn: t.ID, Call: call.ID, Child: c.Child, N: c.N})
		d.unpause("a child goes on")
		d.advance()
	case messages.ReportCompleted:
		d.emit(messages.ChildCompleted{Turn: t.ID, Call: call.ID, Child: c.Child, N: c.N, Spent: c.Spent})
		d.emit(messages.ToolCompleted{Turn: t.ID, Call: call.ID, Output: c.Output, Blob: c.Blob})
		d.goOn("a child has ended")
	default:
		ev := messages.ChildFailed{Turn: t.ID, Call: call.ID, Child: c.Child, N: c.N, Reason: c.Reason, Message: c.Message, Spent: c.Spent}
		if ev.Reason == "" {
			ev.Reason = string(c.What)
		}
		d.emit(ev)
		message := "agent " + c.Child + " gave no answer (" + ev.Reason + ")"
		if c.Message != "" {
			message += ": " + c.Message
		}
		d.emit(messages.ToolFailed{Turn: t.ID, Call: call.ID, Kind: "child", Message: message})
		d.goOn("a child has ended")
	}
}

// passDown gives a decision to the call below that waits for it. done says that
// there is one, or that the decision is refused.
func (d *decision) passDown(c messages.Command, of messages.TurnID, id messages.CallID, kind string, ev messages.ChildDecided) (done bool, err error) {
	t := d.s.Turn
	if t == nil {
		return false, nil
	}
	if own := t.Call(id); own != nil && (of == "" || of == t.ID) && (own.Outcome == projections.CallWaiting || own.Outcome == projections.CallUnknown) {
		return false, nil
	}
	var found []messages.ChildDecided
	changed := false
	for i := range t.Calls {
		if !t.Calls[i].ListsBelow() {
			continue
		}
		for _, w := range t.Calls[i].Child.Waiting {
			if w.Call != id || of != "" && w.Turn != of || w.Kind != kind {
				continue
			}
			if ev.ArgsHash != "" && ev.ArgsHash != w.ArgsHash {
				changed = true
				continue
			}
			hit := ev
			hit.Turn, hit.Call, hit.Agent, hit.Of, hit.Waits = t.ID, t.Calls[i].ID, w.Agent, w.Turn, w.Call
			hit.ArgsHash = w.ArgsHash
			found = append(found, hit)
		}
	}
	switch {
	case len(found) > 1:
		return true, messages.Refuse(messages.Conflict, "call %q waits in %s and in %s: give the decision to one of them", id, found[0].Agent, found[1].Agent)
	case len(found) == 1:
		ev = found[0]
		ev.Command, ev.ID, ev.Person = c.CommandType(), messages.Derived("for:", d.env.Agent.Full(), messages.IDOf(c)), d.env.Person
		if slices.ContainsFunc(d.s.Passed, func(p messages.ChildDecided) bool { return saysSame(p, ev) }) {
			return true, d.noop(c, "the same was decided about call %q before, and is on its way to %s", id, ev.Agent)
		}
		d.emit(ev)
		return true, nil
	case changed:
		return true, messages.Refuse(messages.Conflict, "the arguments of call %q are not those that were decided about: look at it again; nothing was changed", id)
	}
	return false, nil
}

// saysSame reports whether two decisions are one but for their ids, reasons and persons.
func saysSame(a, b messages.ChildDecided) bool {
	text := func(ev messages.ChildDecided) string {
		if ev.Text == nil {
			return messages.DeniedText
		}
		return *ev.Text
	}
	if text(a) != text(b) {
		return false
	}
	a.ID, a.Reason, a.Text, a.Person = b.ID, b.Reason, b.Text, b.Person
	return a == b
}

// settled hears what became of a decision that was passed down.
func (d *decision) settled(c messages.Settled) error {
	i := slices.IndexFunc(d.s.Passed, func(ev messages.ChildDecided) bool { return ev.ID == c.Decision })
	if i < 0 {
		return d.noop(c, "nobody waits any more for what becomes of decision %q", c.Decision)
	}
	ev := d.s.Passed[i]
	d.emit(messages.ChildSettled{
		Turn: ev.Turn, Call: ev.Call, Agent: ev.Agent, Of: ev.Of, Waits: ev.Waits, Command: ev.Command, ID: ev.ID,
		N: c.N, Refused: c.Refused, Message: c.Message,
	})
	return nil
}

// stopChild tells of a call whose child is to stop with its turn.
func (d *decision) stopChild(c *projections.CallState, why string) {
	if c.Child != nil && !c.Child.Detached {
		d.emit(messages.ChildAborted{Turn: d.s.Turn.ID, Call: c.ID, Child: c.Child.Agent, Input: c.Child.Input, Reason: why})
	}
}

// stored goes on when a command is stored for another agent.
func (d *decision) stored(o any) {
	switch o := o.(type) {
	case ParentTold:
		for i := range d.s.Tasks {
			if task := &d.s.Tasks[i]; task.Input == o.Input && task.owes() && task.Changed == o.Upto {
				what := d.s.reportOf(d.env.Agent, task).What
				d.emit(messages.ChildReported{Input: o.Input, Upto: o.Upto, What: what})
				return
			}
		}
	case TaskGiven:
		if d.s.Turn == nil {
			return
		}
		c := d.s.childCall(Effect{Turn: d.s.Turn.ID, Call: o.Call})
		if c != nil && c.Child.Detached && c.Attempt == o.Attempt {
			d.emit(messages.ToolCompleted{Turn: d.s.Turn.ID, Call: c.ID, Output: "Agent " + c.Child.Agent + " has begun; it goes on by itself and no answer comes from it here."})
			d.goOn("a child has begun")
		}
	}
}

// evolvePassed folds what becomes of decisions that are passed down.
func (s *State) evolvePassed(ev messages.Event) {
	var over func(messages.ChildDecided) bool
	switch ev := ev.(type) {
	case messages.ChildDecided:
		s.Passed = append(s.Passed, ev)
		return
	case messages.ChildSettled:
		over = func(p messages.ChildDecided) bool { return p.ID == ev.ID }
	case messages.ChildStopped: // so has all that was below, and nobody asks any more
		over = func(p messages.ChildDecided) bool { return p.Turn == ev.Turn && p.Call == ev.Call }
	default:
		return
	}
	if s.Passed = slices.DeleteFunc(slices.Clone(s.Passed), over); len(s.Passed) == 0 {
		s.Passed = nil
	}
}
