package actors_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// act is one action of a simulated run: a command, a passage of time, or the start or end of
// a node.
type act struct {
	i     int // its index in the whole plan, which names its command
	do    string
	agent int
	fork  int // not 0: the act is for one of the forks, if there is one
	node  int // 0: the newest; else one of those that run
	n     int
	wait  time.Duration
	hasty bool // the next act follows without a wait for idle agents
}

// String returns the act as a report shows it.
func (a act) String() string {
	s := fmt.Sprintf("%d %s agent %d fork %d node %d n %d", a.i, a.do, a.agent, a.fork, a.node, a.n)
	if a.wait > 0 {
		s += " " + a.wait.String()
	}
	if a.hasty {
		s += " hasty"
	}
	return s
}

// odds lists the kinds of acts, each as many times as it is likely.
var odds = strings.Fields(`
	say say say say say say steer steer steer steer interrupting rejecting large
	interrupt abort clear delete cancel cancel later later tick cancel compact resume approve deny forget decide set
	person person person person person person fork fork fork tools tools detach detach
	again again again release release release release release release pass pass pass pass pass
	crash crash rival stop drop activate activate`)

// plan returns the acts of a seed.
func plan(seed uint64) []act {
	r := rand.New(rand.NewPCG(seed, 1))
	acts := make([]act, 20+r.IntN(40))
	aged := len(acts)
	if r.IntN(20) == 0 { // long enough to fill pages of ids that are no longer in the state
		acts, aged = make([]act, 400), 100
	}
	for i := range acts {
		acts[i] = act{i: i, do: odds[r.IntN(len(odds))], agent: r.IntN(5) / 4, n: r.IntN(1000), hasty: r.IntN(4) == 0}
		if r.IntN(3) == 0 || acts[i].do == "tools" || acts[i].do == "detach" {
			acts[i].fork = 1 + r.IntN(mostForks)
		}
		if r.IntN(5) == 0 {
			acts[i].node = r.IntN(4)
		}
		if i >= aged && acts[i].do == "delete" { // after which every id is new
			acts[i].do = "set"
		}
		if acts[i].do == "pass" {
			acts[i].wait = time.Duration(1+r.IntN(1000)) * []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond}[r.IntN(3)]
		}
	}
	acts[0].do = "say"
	return acts
}

// mostNodes is how many nodes run at once at most.
const mostNodes = 3

// play performs one act.
func (w *world) play(acts []act, a act) {
	switch a.do {
	case "pass":
		w.pass(a.wait)
	case "release":
		w.release(a.n)
	case "crash":
		w.newest().end(true)
		w.start()
	case "stop": // a clean stop, and the next node at once
		w.newest().end(false)
		w.start()
	case "rival":
		if len(w.running()) < mostNodes {
			w.start()
		}
	case "drop": // an old node crashes or stops
		if list := w.running(); len(list) > 1 {
			list[a.n%(len(list)-1)].end(a.n%2 == 0)
		}
	case "activate":
		w.activate(w.pick(a), w.target(a))
	case "again":
		if first := acts[a.n%len(acts)]; first.i < a.i {
			if c := w.commandOf(first); c != nil {
				w.ask(w.pick(a), w.target(first), c)
			}
		}
	case "fork":
		if c, ok := w.fork(a); ok {
			w.ask(w.pick(a), w.target(a), c)
		}
	default:
		w.ask(w.pick(a), w.target(a), w.command(a))
	}
}

func (w *world) pick(a act) *host {
	list := w.running()
	if a.node == 0 {
		return list[len(list)-1]
	}
	return list[a.n%len(list)]
}

func (a act) id() string { return fmt.Sprint(a.do, a.i) }

// commandOf returns the command of an earlier act; nil if it had none.
func (w *world) commandOf(a act) messages.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list := w.commands[w.target(a).Key+"/"+a.id()]; len(list) > 0 {
		return list[0].cmd
	}
	return nil
}

func (w *world) command(a act) messages.Command {
	id, text := a.id(), messages.TextContent(fmt.Sprint("text ", a.i))
	switch a.do {
	case "say":
		return messages.Input{ID: id, Content: text, Options: messages.InputOptions{MaxSteps: a.n % 3 * 2}}
	case "steer":
		return messages.Input{ID: id, Content: text, Policy: messages.PolicySteer}
	case "interrupting":
		return messages.Input{ID: id, Content: text, Policy: messages.PolicyInterrupt}
	case "rejecting":
		return messages.Input{ID: id, Content: text, Policy: messages.PolicyReject}
	case "large":
		return messages.Input{ID: id, Content: messages.TextContent(strings.Repeat("x", 10<<10+a.n*30))}
	case "later":
		in := messages.Input{ID: id, Content: text, Policy: messages.Policies()[a.n%4]}
		in.In = messages.Span(time.Duration(1+a.n%40) * time.Second)
		return in
	case "tick":
		in := messages.Input{ID: id, Content: text, Policy: messages.Policies()[a.n%4]}
		in.Cron, in.Name = "* * * * *", []string{"", "tick"}[a.n%2]
		return in
	case "compact":
		return messages.Compact{ID: id, Keep: 1 + a.n%4, How: []string{"", messages.CompactSummary, messages.CompactWindow}[a.n%3]}
	case "set":
		return messages.SetState{ID: id, Patch: json.RawMessage(fmt.Sprintf(`{"k%d":%d}`, a.n%3, a.n))}
	case "tools":
		return messages.UseTools{ID: id}
	case "detach":
		return messages.Detach{ID: id}
	case "interrupt":
		return messages.Interrupt{ID: id, Reason: "stop it"}
	case "abort":
		return messages.Abort{ID: id}
	case "clear":
		return messages.Clear{ID: id}
	case "delete":
		return messages.Delete{ID: id, Reason: "no more"}
	}
	return w.decision(a, id)
}

// decision returns a command that depends on what the agent waits for.
func (w *world) decision(a act, id string) messages.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.fold(w.target(a)).state
	if a.do == "person" {
		a.do = actOfPerson(s, a.n)
	}
	switch a.do {
	case "resume":
		return messages.Resume{ID: id, LimitOverrides: messages.LimitOverrides{MaxSteps: a.n % 3 * 4, MaxTokens: a.n % 2 * 100000}}
	case "cancel":
		switch {
		case len(s.Timers.Scheduled) > 0 && a.n%4 == 0:
			return messages.Cancel{ID: id, Timer: s.Timers.Scheduled[a.n%len(s.Timers.Scheduled)].Timer}
		case len(s.Inputs.Queued) > 0 && a.n%4 < 3:
			return messages.Cancel{ID: id, Input: s.Inputs.Queued[a.n%len(s.Inputs.Queued)].ID}
		}
		return messages.Cancel{ID: id, All: true}
	case "forget":
		known := append(remembered(s), "pay")
		return messages.Forget{ID: id, Tool: known[0]}
	case "approve":
		c := waiting(s, projections.CallWaiting, a.n)
		return messages.Approve{ID: id, Call: c.ID, ArgsHash: hashOf(c, a.n), Remember: a.n%4 < 2}
	case "deny":
		c := waiting(s, projections.CallWaiting, a.n)
		return messages.Deny{ID: id, Call: c.ID, ArgsHash: hashOf(c, a.n), Remember: a.n%4 < 2}
	}
	c := waiting(s, projections.CallUnknown, a.n)
	return messages.Decide{ID: id, Call: c.ID, Outcome: []messages.Outcome{messages.OutcomeCompleted, messages.OutcomeFailed, messages.OutcomeRetry}[a.n%3], Result: "so it was"}
}

// actOfPerson returns what a person does about an agent that waits for one.
func actOfPerson(s *turn.State, n int) string {
	t := s.Turn
	switch {
	case t != nil && slices.ContainsFunc(t.Calls, func(c projections.CallState) bool { return c.Outcome == projections.CallWaiting }):
		return []string{"approve", "approve", "deny"}[n%3]
	case t != nil && slices.ContainsFunc(t.Calls, func(c projections.CallState) bool { return c.Outcome == projections.CallUnknown }):
		return "decide"
	case len(s.Decisions.List) > 0 && n%2 == 0:
		return "forget"
	}
	return "resume"
}

// waiting returns a call with the outcome, or a made-up one if there is none.
func waiting(s *turn.State, status projections.Outcome, n int) projections.CallState {
	var list []projections.CallState
	if s.Turn != nil {
		for _, c := range s.Turn.Calls {
			if c.Outcome == status {
				list = append(list, c)
			}
		}
	}
	if len(list) == 0 {
		return projections.CallState{ToolCall: projections.ToolCall{ID: "c1"}}
	}
	return list[n%len(list)]
}

// hashOf returns the hash of the call's arguments, of other arguments, or none.
func hashOf(c projections.CallState, n int) string {
	switch n % 5 {
	case 0:
		return messages.HashArguments(c.Arguments + " ")
	case 1, 2:
		return messages.HashArguments(c.Arguments)
	}
	return ""
}

// release lets a held job continue.
func (w *world) release(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.jobs) > 0 {
		w.jobs[n%len(w.jobs)].release()
	}
}

// pass lets time pass, and then acts as the owner of a partition. It activates agents whose
// timers are due, those that owe work, and those to which a previous owner has appended
// since. Other agents continue on their own.
func (w *world) pass(d time.Duration) {
	<-time.After(d)
	h := w.newest()
	for _, a := range w.agents {
		entries := w.stage.Entries(a)
		if len(entries) == 0 {
			continue
		}
		newest := entries[len(entries)-1]
		s := newest.Summary
		due, late := !s.Due.IsZero() && !s.Due.After(time.Now()), s.Open || len(entries) > h.met[a]
		if due || late && newest.Frame.Epoch < h.node.Epoch() {
			w.activate(h, a)
		}
	}
}

// drain runs until all agents are idle, once faults have ended. It decides whatever waits for
// a decision.
func (w *world) drain() {
	idle := 0 // passes without work; a slow append may still be in flight in the first
	for range 200 {
		synctest.Wait()
		w.check()
		idle++
		for i, a := range w.agents {
			if w.help(i, a) {
				idle = 0
			}
		}
		if idle > 3 {
			return
		}
		w.pass(5 * time.Second)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.agents {
		v := w.fold(a)
		w.fail("%s still has work: phase %s, effects %v, %d inputs queued", a, v.state.Phase(), v.state.Effects(), len(v.state.Inputs.Queued))
	}
}

// help decides what the agent waits for, and reports whether the agent has work.
func (w *world) help(i int, a messages.AgentID) bool {
	w.mu.Lock()
	s := &w.fold(a).state
	last, calls, paused := s.Last, []projections.CallState(nil), ""
	if s.Turn != nil {
		calls, paused = slices.Clone(s.Turn.Calls), s.Turn.Paused()
	}
	dry := s.Forks.Dry()
	busy, later := s.Turn != nil || s.Open(), slices.Clone(s.Timers.Scheduled)
	w.mu.Unlock()
	h, id := w.newest(), fmt.Sprintf("help%d-%d", i, last)
	if len(later) > 0 { // else it would run forever
		for i, sc := range later {
			w.ask(h, a, messages.Cancel{ID: fmt.Sprint(id, "d", i), Timer: sc.Timer})
		}
		return true
	}
	if !busy {
		return false
	}
	for _, c := range calls {
		switch c.Outcome {
		case projections.CallWaiting:
			w.ask(h, a, messages.Approve{ID: id, Call: c.ID})
			return true
		case projections.CallUnknown:
			if !dry { // else it may never have a result
				w.ask(h, a, messages.Decide{ID: id, Call: c.ID, Outcome: messages.OutcomeRetry})
			}
			w.ask(h, a, messages.Decide{ID: id + "b", Call: c.ID, Outcome: messages.OutcomeFailed})
		}
	}
	if paused != "" {
		more := messages.LimitOverrides{MaxSteps: 1000, MaxTokens: 10_000_000, MaxDuration: messages.Span(1000 * time.Hour)}
		w.ask(h, a, messages.Resume{ID: id + "c", LimitOverrides: more, AgentLimits: more})
		return true
	}
	return true
}

// remembered returns the tools that the agent remembers a decision about.
func remembered(s *turn.State) (tools []string) {
	for _, r := range s.Decisions.List {
		tools = append(tools, r.Tool)
	}
	slices.Sort(tools)
	return tools
}
