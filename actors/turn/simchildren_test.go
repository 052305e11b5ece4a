package turn_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// kid is a child as the world has it: it reports late, twice, out of order, and
// ends once.
type kid struct {
	turn  messages.TurnID
	call  messages.CallID
	agent string
	n     messages.EventNumber
	taken bool // its task was taken back
	sent  []messages.Report
}

func (k *kid) ended() bool { return len(k.sent) > 0 && k.sent[len(k.sent)-1].What.Ends() }

// kid is the child of a call, known from now on.
func (s *sim) kid(turn messages.TurnID, call messages.CallID, agent string, n messages.EventNumber) *kid {
	for _, k := range s.kids {
		if k.turn == turn && k.call == call && k.agent == agent {
			return k
		}
	}
	k := &kid{turn: turn, call: call, agent: agent, n: n}
	s.kids = append(s.kids, k)
	return k
}

// awaited are the children that the agent waits for, or for whose end.
func (s *sim) awaitedKids() (list []*kid) {
	if t := s.live.Turn; t != nil {
		for _, c := range t.Calls {
			if c.Outcome == projections.CallRunning && c.Child != nil && !c.Child.Detached {
				list = append(list, s.kid(t.ID, c.ID, c.Child.Agent, c.Child.N))
			}
		}
	}
	for _, m := range s.live.Outbox.Messages {
		if m.Kind == projections.CancelChild {
			list = append(list, s.kid(m.Turn, m.Call, m.To, 0))
		}
	}
	return list
}

// childReports has a child report something: usually one that is awaited.
func (s *sim) childReports() {
	list := s.awaitedKids()
	if len(list) == 0 || s.chance(6) && !s.tame {
		list = s.kids
	}
	if len(list) > 0 {
		s.decide(s.reports(list[s.r.IntN(len(list))]))
	}
}

// reports returns what a child reports next; now and then what it reported before, or what
// was so before.
func (s *sim) reports(k *kid) messages.Report {
	if k.ended() || len(k.sent) > 0 && s.chance(6) && !s.tame {
		return k.sent[len(k.sent)-1-s.r.IntN(min(len(k.sent), 3)*s.wild()+1-s.wild())]
	}
	r := messages.Report{Turn: k.turn, Call: k.call, Child: k.agent, What: messages.ReportGoing}
	k.n += messages.EventNumber(1 + s.r.IntN(3))
	r.N = k.n
	switch {
	case k.taken || s.tame || s.chance(3):
		r.What = messages.ReportWhat(s.one("completed", "completed", "failed", "aborted", "cancelled", "refused"))
		r.Output, r.Message = s.one("", "done"), s.one("", "no")
		r.Usage, r.Cost = messages.Usage{Input: s.r.IntN(9), Output: s.r.IntN(9)}, messages.Cost(s.r.IntN(999))
		r.Tokens = r.Usage.Tokens() + s.r.IntN(3)
		if r.What == messages.ReportRefused {
			r.N, r.Used = 0, messages.Used{}
		}
	case s.r.IntN(3) > 0:
		r.What, r.Busy = messages.ReportWaiting, s.chance(3)
		for i := range 1 + s.r.IntN(2) {
			r.Waiting = append(r.Waiting, messages.Wait{
				Agent: s.one("default/low/a", "default/low/b"), Turn: "t4", Call: messages.CallID([]string{s.one("w0", "c1", "c2"), "w1"}[i]),
				Kind: messages.WaitKind(s.one("approval", "approval", "unknown", "paused")), ArgsHash: messages.HashArguments("{}"),
			})
		}
	case s.chance(4): // from before its last report
		r.N -= min(r.N, 5)
	}
	r.More = r.What == messages.ReportWaiting && s.chance(4)
	r.ID = fmt.Sprint("kid ", k.agent, k.n, s.parent != nil)
	k.sent = append(k.sent, r)
	return r
}

// wild is 1 while the world does not want the life to end.
func (s *sim) wild() int {
	if s.tame {
		return 0
	}
	return 1
}

// sends reports whether an effect sends a command to another agent.
func sends(e turn.Effect) bool { return e.Do == turn.Send }

// posted is what comes of a command for another agent.
func (s *sim) posted(e turn.Effect) any {
	m, ok := s.live.Message(s.env.Agent, e)
	if !ok {
		return nil
	}
	switch c := m.Command.(type) {
	case messages.Task:
		s.kid(e.Turn, e.Call, m.To.Full(), 0)
	case messages.CancelChild:
		s.kid(e.Turn, e.Call, m.To.Full(), 0).taken = true
	case messages.Report:
		if !s.blind && c.N == 0 {
			s.fail("a report of no event\n%+v", c)
		}
	default:
		return s.settled(c)
	}
	if m.Resend {
		return nil
	}
	return turn.MessageStored{ID: e.ID}
}

// settled returns the effect of a decision that was forwarded; often there is
// none.
func (s *sim) settled(c messages.Command) any {
	if !s.blind && messages.ForwardedBy(c).For != s.env.Agent.Full() {
		s.fail("a decision without the person who made it\n%+v", c)
	}
	if s.chance(2) && !s.tame {
		return nil
	}
	r := messages.DecisionEffect{Decision: messages.IDOf(c), N: 9}
	if s.chance(3) {
		r.N, r.Refused, r.Message = 0, messages.Code(s.one("conflict", "not_found")), "too late"
	}
	r.ID = "settled " + r.Decision + string(r.Refused)
	return r
}

// waitsBelow is a call below that waits, usually.
func (s *sim) waitsBelow(kind messages.WaitKind) (messages.CallID, bool) {
	if t := s.live.Turn; t != nil && s.chance(2) {
		for _, c := range t.Calls {
			if c.Child != nil && len(c.Child.Waiting) > 0 {
				if w := c.Child.Waiting[s.r.IntN(len(c.Child.Waiting))]; w.Kind == kind || s.chance(4) {
					return w.Call, true
				}
			}
		}
	}
	return "", false
}

func (s *sim) task() messages.Task {
	t := messages.Task{ID: s.id(), Content: messages.TextContent("do it"), Parent: messages.Parent{
		Caller: messages.Caller{Agent: "default/boss/b", Turn: "t3", Call: messages.CallID(s.one("b1", "b2")), Detached: s.chance(4)},
	}}
	if s.has(withLimits, 4) {
		t.Parent.Limits.MaxTokens = 50 + s.r.IntN(200)
	}
	for range max(0, s.r.IntN(20)-11) {
		t.Parent.Above = append(t.Parent.Above, messages.Caller{Agent: "default/boss/a", Turn: "t3", Call: "b1"})
	}
	return t
}

func (s *sim) recall() messages.CancelChild {
	input := s.anyInput()
	if s.chance(6) {
		input = fmt.Sprint("id", s.r.IntN(len(s.ids)+3)) // one that may come later
	}
	return messages.CancelChild{ID: s.id(), Input: input, Parent: messages.Parent{Caller: messages.Caller{Agent: "default/boss/b", Turn: "t3", Call: "b1"}}}
}

// childFacts is a call that is a child.
type childFacts struct {
	agent, input string
	detached     bool
	tokens       int
	n            messages.EventNumber
	waiting      []messages.Wait
	busy         bool
	aborted      bool
}

func (k *childFacts) stalled() bool { return len(k.waiting) > 0 && !k.busy }

func placeOf(agent string, turn messages.TurnID, call messages.CallID) string {
	return agent + " " + string(turn) + " " + string(call)
}

// taskFacts is an input that is another agent's call.
type taskFacts struct {
	parent   messages.Parent
	ended    messages.ReportWhat
	reported messages.EventNumber
	over     bool // the end was reported
	early    bool // it was taken back before it came
}

// active reports whether a call is under way and does not wait for a person.
func active(c *callFacts) bool { return c.running && (c.child == nil || !c.child.stalled()) }

func stalled(c *callFacts) bool { return c.running && c.child != nil && c.child.stalled() }

// childEvent checks an event of the turn's children; false if ev is
// something else.
func (c *checker) childEvent(ev messages.Event) bool {
	r, reported := c.cmd.(messages.Report)
	reported = reported || c.cmd == nil
	switch ev := ev.(type) {
	case messages.ChildSpawned:
		c.spawned(ev)
	case messages.ChildWaiting:
		k := c.child(ev.Call, ev.Child)
		c.must(reported && ev.N > k.n && len(ev.Waiting) > 0 && (c.cmd == nil || r.What == messages.ReportWaiting), "a child waits that did not report it, or an old report counts")
		k.n, k.waiting, k.busy = ev.N, ev.Waiting, ev.Busy
	case messages.ChildResumed:
		k := c.child(ev.Call, ev.Child)
		c.must(reported && ev.N > k.n && (c.cmd == nil || r.What == messages.ReportGoing), "a child continues that did not report it, or an old report counts")
		k.n, k.waiting, k.busy = ev.N, nil, false
	case messages.ChildDecided:
		c.decidedBelow(ev)
	case messages.ChildCompleted:
		c.child(ev.Call, ev.Child)
		c.must(reported && (c.cmd == nil || r.What == messages.ReportCompleted && r.Used == ev.Used), "a child completed that did not report it")
		c.usedBelow(ev.Used)
	case messages.ChildFailed:
		c.child(ev.Call, ev.Child)
		c.must(reported && (c.cmd == nil || r.What.Ends() && r.What != messages.ReportCompleted && r.Used == ev.Used), "a child failed that did not report it")
		c.usedBelow(ev.Used)
	case messages.ChildAborted:
		k := c.child(ev.Call, ev.Child)
		c.must(!k.detached && !k.aborted && k.input == ev.Input, "a child is to stop twice, or goes by itself")
		k.aborted = true
		c.stopping[placeOf(ev.Child, ev.Turn, ev.Call)] = true
	default:
		return false
	}
	return true
}

// child is the child of a running call.
func (c *checker) child(id messages.CallID, agent string) *childFacts {
	call := c.open.call(id)
	c.must(call != nil && call.running && call.child != nil && call.child.agent == agent, "an event of no child")
	return call.child
}

func (c *checker) spawned(ev messages.ChildSpawned) {
	o, call := c.open, c.open.call(ev.Call)
	c.must(call != nil && call.running && call.child == nil && call.onUnknown == "", "a child of no call")
	c.must(!c.children[ev.Child], "two calls have one child")
	c.children[ev.Child] = true
	left := o.limits.MaxTokens - o.used.Tokens
	for _, other := range o.calls {
		if other.running && other.child != nil {
			left -= other.child.tokens
		}
	}
	c.must(o.limits.MaxTokens == 0 || c.cmd == nil || ev.Limits.MaxTokens > 0 && ev.Limits.MaxTokens <= left, "a child may use more than is left")
	c.must(o.depth < messages.MaxCallers, "a child is too deep")
	call.child = &childFacts{agent: ev.Child, input: ev.Input, detached: ev.Detached, tokens: ev.Limits.MaxTokens}
}

func (c *checker) decidedBelow(ev messages.ChildDecided) {
	call := c.open.call(ev.Call)
	c.must(call != nil && call.running && call.child != nil, "a decision about no child")
	place := placeOf(ev.Agent, ev.Of, ev.Waits)
	c.must(slices.ContainsFunc(call.child.waiting, func(w messages.Wait) bool { return placeOf(w.Agent, w.Turn, w.Call) == place }), "a decision about what does not wait below")
	of := c.open.id // the turn that the decision is about
	switch cmd := c.cmd.(type) {
	case messages.Approve:
		of = cmp.Or(cmd.Turn, of)
	case messages.Deny:
		of = cmp.Or(cmd.Turn, of)
	case messages.Decide:
		of = cmp.Or(cmd.Turn, of)
	}
	own := c.open.call(ev.Waits)
	c.must(c.cmd == nil || own == nil || !own.gated && !own.unknown || of != c.open.id, "a decision went below that is about an own call")
	_, twice := c.passed[ev.ID]
	c.must(!twice && ev.ID != "", "a decision was passed down twice")
	c.passed[ev.ID] = ev
}

func (c *checker) usedBelow(used messages.Used) {
	u := projections.Use{Tokens: used.Tokens, Cost: used.Cost}
	c.open.usage = c.open.usage.Add(used.Usage)
	c.open.used.Tokens, c.open.used.Cost = c.open.used.Tokens+u.Tokens, c.open.used.Cost+u.Cost
	c.used.Tokens, c.used.Cost = c.used.Tokens+u.Tokens, c.used.Cost+u.Cost
}

// familyEvent checks an event of tasks and decisions outside of turns; false if ev is something else.
func (c *checker) familyEvent(ev messages.Event) bool {
	switch ev := ev.(type) {
	case messages.ChildStopped:
		place := placeOf(ev.Child, ev.Turn, ev.Call)
		c.must(c.stopping[place], "a child stopped that was not to, or twice")
		delete(c.stopping, place)
		maps.DeleteFunc(c.passed, func(_ string, d messages.ChildDecided) bool { return d.Turn == ev.Turn && d.Call == ev.Call })
		c.used.Tokens, c.used.Cost = c.used.Tokens+ev.Tokens, c.used.Cost+ev.Cost
	case messages.ChildSettled:
		d, passed := c.passed[ev.ID]
		r, reported := c.cmd.(messages.DecisionEffect)
		c.must(passed && ev.Agent == d.Agent && ev.Of == d.Of && ev.Waits == d.Waits && ev.Command == d.Command, "an event of no decision")
		c.must(c.cmd == nil || reported && r.Decision == ev.ID && r.Refused == ev.Refused && r.N == ev.N, "a decision had an effect that was not reported")
		delete(c.passed, ev.ID)
	case messages.ChildReported:
		t := c.tasks[ev.Input]
		c.must(t != nil && !t.parent.Detached && !t.over && ev.Upto > t.reported && ev.Upto <= c.n, "a report that is not awaited, or a second one")
		c.must(!ev.What.Ends() || ev.What == t.ended, "an end was reported that was none, or another")
		t.reported, t.over = ev.Upto, ev.What.Ends()
	case messages.InputRecalled:
		_, known := c.inputs[ev.Input]
		c.must(!known || strings.HasPrefix(ev.Input, "timer:"), "an input was refused beforehand that had come") // no command brought that
		c.tasks[ev.Input] = &taskFacts{parent: ev.Parent, ended: messages.ReportCancelled, early: true}
	default:
		return false
	}
	return true
}

// taskEnds notes how a task has ended.
func (c *checker) taskEnds(id string, ev messages.Event) {
	t := c.tasks[id]
	if t == nil || t.early { // one of its id that is no task
		return
	}
	c.must(t.ended == "", "a task ended twice")
	switch ev.(type) {
	case messages.TurnCompleted:
		t.ended = messages.ReportCompleted
	case messages.TurnFailed:
		t.ended = messages.ReportFailed
	case messages.TurnAborted:
		t.ended = messages.ReportAborted
	case messages.InputCancelled:
		t.ended = messages.ReportCancelled
	case messages.InputDropped:
		t.ended = messages.ReportDropped
	}
}

// outbox checks what goes to other agents, and returns the other effects.
func (c *checker) outbox(effects []turn.Effect) (rest []turn.Effect) {
	takes, reports, owed, passes, tasks := 0, 0, 0, 0, 0
	for _, e := range effects {
		if !sends(e) {
			rest = append(rest, e)
			continue
		}
		msg, ok := c.s.live.Message(c.s.env.Agent, e)
		c.must(ok, "there is no command for an effect that sends one")
		switch m := c.s.live.Outbox.Message(e.ID); m.Kind {
		case projections.TaskMessage:
			call := c.open.call(e.Call)
			c.must(call != nil && call.running && call.child != nil && len(call.child.waiting) == 0 && msg.To.Full() == call.child.agent, "a task goes to no child")
			if tasks++; call.child.n == 0 { // it has never reported anything
				owed++
			}
		case projections.ForwardDecision:
			d, passed := c.passed[e.ID]
			c.must(passed && msg.To.Full() == d.Agent && msg.Command.CommandType() == d.Command && messages.IDOf(msg.Command) == d.ID, "a decision is forwarded that was not made, or another")
			passes++
			owed++
		case projections.CancelChild:
			c.must(c.stopping[placeOf(msg.To.Full(), e.Turn, e.Call)], "a task is taken back that is awaited")
			takes++
		case projections.ReportToParent:
			t := c.tasks[m.Input]
			c.must(t != nil && !t.parent.Detached && !t.over && m.N > t.reported, "a parent is sent a report that it has")
			c.must(c.s.live.Outbox.Report(m.Input) == m, "two reports about one task are on their way")
			reports++
		}
	}
	for _, d := range c.passed {
		if c.s.live.Outbox.Cancels(d.Turn, d.Call) == nil {
			passes--
		}
	}
	c.must(passes == 0, "a decision is not on its way, or goes to a child that is to stop")
	c.must(takes == len(c.stopping), "a child keeps running that is not awaited")
	for _, t := range c.tasks {
		c.must(t.ended == "" || t.over || t.parent.Detached || reports > 0, "the end of a task is not reported to its parent")
	}
	c.must(takes+reports+owed == 0 || c.s.live.Open(), "an agent with messages to send is not open")
	c.must(tasks == c.open.sendsTasks(), "a task is not on its way, or one is twice")
	return rest
}

// sendsTasks is to how many children their task is sent.
func (o *openTurn) sendsTasks() (n int) {
	if o == nil {
		return 0
	}
	for _, call := range o.calls {
		if call.running && call.child != nil && len(call.child.waiting) == 0 {
			n++
		}
	}
	return n
}
