//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// evidence is what the proof is made of: the bookkeeper's book, the tools'
// ledger, and the agents' logs and dead letters when all is quiet.
type evidence struct {
	sent    map[string]*sent
	shown   map[string]map[messages.EventNumber]client.Event
	logs    map[string][]client.Event
	letters map[string]messages.Code // by the id of what was refused
	ledger  []entry
	decided []decided
	differ  []violation
	// children are the agents that work for others; blobs counts the payloads
	// that were read.
	children []string
	blobs    int
	mortals  []*mortal
	branches map[string]*branch
}

// gather waits until every agent has come to rest and reads all logs. What is
// acknowledged, applied and not in a log by then never will be: that is for the
// proof to say.
func (w *world) gather(c *client.Client) (*evidence, error) {
	for range patience {
		w.ended()
		left, _, err := c.Backlog(w.ctx)
		if err != nil {
			return nil, err
		}
		if left == 0 {
			if e, err := w.read(c); err != nil || e.resting() {
				return e, err
			}
		}
		select {
		case <-time.After(time.Second):
		case <-w.ctx.Done():
			return nil, errOver
		}
	}
	return nil, fmt.Errorf("%d s were not enough", patience)
}

// ended waits until readers have seen the end of all inputs, but not for long.
func (w *world) ended() {
	ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
	defer cancel()
	w.book.Until(ctx, nil, func() bool { return len(w.book.open) == 0 })
}

// read reads the logs of all agents and the dead letters of all tenants.
func (w *world) read(c *client.Client) (*evidence, error) {
	w.book.Lock()
	e := &evidence{sent: maps.Clone(w.book.sent), shown: make(map[string]map[messages.EventNumber]client.Event),
		logs: make(map[string][]client.Event), letters: make(map[string]messages.Code), branches: maps.Clone(w.book.branches), decided: slices.Clone(w.book.decided), differ: slices.Clone(w.book.differ)}
	for agent, shown := range w.book.shown {
		e.shown[agent] = maps.Clone(shown)
	}
	w.book.Unlock()
	for _, s := range e.sent {
		e.logs[s.Agent] = nil
	}
	for agent := range e.branches {
		e.logs[agent] = nil
	}
	e.mortals = w.mortals
	for _, m := range w.mortals {
		e.logs[m.agent] = nil
	}
	if err := e.readLogs(w.ctx, c, slices.Collect(maps.Keys(e.logs))); err != nil {
		return nil, err
	}
	if err := e.readChildren(w.ctx, c); err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		for l, err := range c.DeadLetters(w.ctx, tenant) {
			var body struct{ ID string }
			if err == nil {
				err = json.Unmarshal([]byte(l.Body), &body)
			}
			if err != nil {
				return nil, fmt.Errorf("dead letters of %s: %w", tenant, err)
			}
			e.letters[body.ID] = messages.Code(l.Code)
		}
	}
	return e, nil
}

// readers is how many logs are read at a time.
const readers = 8

// readLogs reads the logs of agents.
func (e *evidence) readLogs(ctx context.Context, c *client.Client, agents []string) error {
	var mu sync.Mutex
	return atOnce(agents, func(agent string) error {
		log, err := readLog(ctx, c, agent)
		mu.Lock()
		defer mu.Unlock()
		e.logs[agent] = log
		return err
	})
}

// atOnce does something with each of some, with several at a time.
func atOnce[T any](some []T, do func(T) error) error {
	left, failed := make(chan T), make(chan error, readers)
	for range readers {
		go func() {
			var all error
			for one := range left {
				all = errors.Join(all, do(one))
			}
			failed <- all
		}()
	}
	for _, one := range some {
		left <- one
	}
	close(left)
	var all error
	for range readers {
		all = errors.Join(all, <-failed)
	}
	return all
}

// readLog reads an agent's log, which is empty if all that it was sent was refused.
func readLog(ctx context.Context, c *client.Client, agent string) (log []client.Event, err error) {
	for line, err := range c.Query(ctx, agent, messages.Query{View: "events"}) {
		var refused *messages.Error
		if errors.As(err, &refused) && refused.Code == messages.NotFound {
			return nil, nil
		}
		var ev client.Event
		if err == nil {
			err = json.Unmarshal(line, &ev)
		}
		if err != nil {
			return nil, fmt.Errorf("the log of %s cannot be read: %w", agent, err)
		}
		log = append(log, ev)
	}
	return log, nil
}

// resting reports whether every accepted input has ended, every child has, and
// what was to come later has come.
func (e *evidence) resting() bool {
	for id, s := range e.sent {
		if _, came := e.accepted(id); s.Delay > 0 && s.owed() && !came {
			return false
		}
	}
	for _, m := range e.mortals {
		came := 0
		for _, ev := range e.logs[m.agent] {
			if ev.Type == "input.accepted" {
				came++
			}
		}
		if came < len(m.sent) {
			return false
		}
	}
	for agent, log := range e.logs {
		for _, c := range tasks(e.own(agent)) {
			if len(c.ends) == 0 {
				return false
			}
		}
		open := make(map[string]bool)
		for _, ev := range log {
			if ev.Type == "input.accepted" {
				open[field(ev).Input] = true
			}
			for _, id := range endedBy(ev) {
				delete(open, id)
			}
		}
		if len(open) > 0 {
			return false
		}
	}
	return true
}

// String counts.
func (e *evidence) String() string {
	types := make(map[string]int)
	for _, log := range e.logs {
		for _, ev := range log {
			types[ev.Type]++
		}
	}
	later := 0
	for id := range e.letters {
		if _, ok := e.accepted(id); ok {
			later++
		}
	}
	lives, removed := 0, 0
	for _, agent := range e.children {
		if e.removed(agent) {
			removed++
		}
	}
	for _, m := range e.mortals {
		lives += m.life
	}
	return fmt.Sprintf("%d agents, %d of them children (%d deleted), %s, %d lives of %d mortals, %d payloads, %d lines of the ledger, %d dead letters (%d of them taken later), events %v",
		len(e.logs), len(e.children), removed, e.branchesString(), lives, len(e.mortals), e.blobs, len(e.ledger), len(e.letters), later, types)
}

// accepted finds an input's acceptance in the log of the agent it was for.
func (e *evidence) accepted(id string) (client.Event, bool) {
	if s := e.sent[id]; s != nil {
		for _, ev := range e.logs[s.Agent] {
			if ev.Type == "input.accepted" && field(ev).Input == id {
				return ev, true
			}
		}
	}
	return client.Event{}, false
}

// violation is a promise that was broken, with the events that show it.
type violation struct {
	agent, what string
	events      []client.Event
}

func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.agent, v.what)
	for _, e := range v.events {
		fmt.Fprintf(&b, "\n    %d %s %s %s", e.N, e.Type, e.At.Format(time.StampMilli), e.Data)
	}
	return b.String()
}

// prove holds the books against the logs. Each check finds its own violations.
func (e *evidence) prove() (all []violation) {
	earned := make(map[string]bool)
	for _, line := range e.ledger {
		earned[line.What+" "+line.Key] = true
	}
	for _, agent := range slices.Sorted(maps.Keys(e.logs)) {
		t := &trial{evidence: e, agent: agent, log: e.logs[agent], earned: earned}
		if e.removed(agent) {
			t.removedForGood()
			all = append(all, t.found...)
			continue
		}
		checks := []func(){t.numbers, t.memory, t.inputs, t.order, t.turns, t.calls, t.decisions, t.commands, t.offspring, t.forks}
		if b := e.branches[agent]; b != nil && b.begun {
			checks = append(checks, t.began, t.keeps)
		}
		for _, m := range e.mortals {
			if m.agent == agent {
				checks = []func(){func() { m.told(t) }, t.turns, t.calls, t.offspring}
			}
		}
		for _, check := range checks {
			check()
		}
		all = append(all, t.found...)
	}
	t := &trial{evidence: e, agent: "the ledger"}
	t.invocations()
	t.effects()
	return slices.Concat(all, t.found, e.differ)
}

// trial is the proof for one agent.
type trial struct {
	*evidence
	agent string
	log   []client.Event
	found []violation
	// earned has what the ledger holds, and under which key.
	earned map[string]bool
}

func (t *trial) wrong(events []client.Event, format string, args ...any) {
	t.found = append(t.found, violation{t.agent, fmt.Sprintf(format, args...), events})
}

// about are the events whose data mention a word.
func (t *trial) about(word string) (some []client.Event) {
	for _, ev := range t.log {
		if strings.Contains(string(ev.Data), `"`+word+`"`) {
			some = append(some, ev)
		}
	}
	return some
}

// numbers holds that events are numbered 1, 2, 3 … .
func (t *trial) numbers() {
	for i, ev := range t.log {
		if ev.N != messages.EventNumber(i+1) {
			t.wrong([]client.Event{ev}, "event number %d where %d is due", ev.N, i+1)
			return
		}
	}
}

// memory holds that what a reader was once shown is still so.
func (t *trial) memory() {
	for n, was := range t.shown[t.agent] {
		if int(n) > len(t.log) {
			t.wrong([]client.Event{was}, "event %d was shown to a reader and is gone: the log ends at %d", n, len(t.log))
			continue
		}
		is := t.log[n-1]
		if !t.branches[t.agent].same(is, was) {
			t.wrong([]client.Event{was, is}, "event %d was shown to a reader and is another now", n)
		}
	}
}

// inputs holds that every acknowledged input was accepted once and ended once,
// and that nothing else was.
func (t *trial) inputs() {
	accepted, ended := make(map[string]int), make(map[string]int)
	for _, ev := range t.log {
		if ev.Type == "input.accepted" {
			accepted[field(ev).Input]++
		}
		for _, id := range endedBy(ev) {
			ended[id]++
		}
	}
	for _, s := range t.sent {
		if s.Command != "input" || s.Agent != t.agent {
			continue
		}
		n, letter := accepted[s.ID], t.letters[s.ID]
		switch {
		case n > 1:
			t.wrong(t.about(s.ID), "input %s was accepted %d times", s.ID, n)
		case n == 0 && s.owed():
			t.wrong(nil, "input %s (%s), acknowledged in life %d, is lost (dead letter: %q)", s.ID, s.Policy, s.Life, letter)
		case n == 0 && s.Life > 0 && letter != messages.Busy:
			t.wrong(nil, "input %s (reject), acknowledged in life %d, was neither accepted nor refused (dead letter: %q)", s.ID, s.Life, letter)
		}
	}
	t.late()
	b := t.branches[t.agent]
	for id, n := range accepted {
		inherited := b != nil && t.about(id)[0].N <= b.at
		if s := t.sent[id]; !inherited && (s == nil || s.Agent != t.agent) {
			t.wrong(t.about(id), "input %s was accepted but never sent here", id)
		}
		if ended[id] != n {
			t.wrong(t.about(id), "input %s was accepted %d times and ended %d times", id, n, ended[id])
		}
	}
}

// late holds that nothing came before its time.
func (t *trial) late() {
	for _, ev := range t.log {
		s := t.sent[field(ev).Input]
		if ev.Type == "input.accepted" && s != nil && s.Delay > 0 && ev.At.Before(s.At.Add(s.Delay).Truncate(time.Millisecond)) {
			t.wrong(t.about(s.ID), "input %s came before %s", s.ID, s.At.Add(s.Delay))
		}
	}
}

// order holds that what one publisher sent was accepted in that order.
func (t *trial) order() {
	last := make(map[string]*sent)
	for _, ev := range t.log {
		s := t.sent[field(ev).Input]
		if ev.Type != "input.accepted" || s == nil || s.Delay > 0 {
			continue
		}
		if before := last[s.Publisher]; before != nil && before.Number > s.Number {
			t.wrong(append(t.about(before.ID), t.about(s.ID)...), "publisher %s sent %s before %s, accepted the other way round", s.Publisher, s.ID, before.ID)
		}
		last[s.Publisher] = s
	}
}

// turns holds that one turn runs at a time, and says in the end what its input
// asked for.
func (t *trial) turns() {
	var running messages.TurnID
	var started client.Event
	failed, steered := false, false
	asked := make(map[messages.CallID]fields)
	for _, ev := range t.log {
		switch ev.Type {
		case "tool.requested":
			asked[field(ev).Call] = field(ev)
		case "tool.completed":
			f := field(ev)
			if text, ok := asked[f.Call].task(); ok && f.output() != digest(readTask(text)) {
				failed = true // something went wrong below, as the log there shows
			}
		case "turn.started":
			if running != "" {
				t.wrong([]client.Event{started, ev}, "turn %s began while %s ran", ev.Turn, running)
			}
			running, started, failed, steered = ev.Turn, ev, false, false
		case "tool.failed", "tool.skipped", "tool.denied":
			failed = true
		case "input.accepted":
			steered = steered || field(ev).Disposition == messages.Steered
		case "turn.completed", "turn.failed", "turn.aborted":
			if ev.Turn != running {
				t.wrong([]client.Event{started, ev}, "turn %s ended while %q ran", ev.Turn, running)
			}
			t.outcome(started, ev, failed || steered)
			running = ""
		default:
			if ev.Turn != "" && ev.Turn != running && ev.Type != "budget.raised" && !strings.HasPrefix(ev.Type, "input.") && !strings.HasPrefix(ev.Type, "child.") {
				t.wrong([]client.Event{started, ev}, "%s of turn %s while %q ran", ev.Type, ev.Turn, running)
			}
		}
	}
	if running != "" {
		t.wrong([]client.Event{started}, "turn %s has not ended", running)
	}
}

// outcome holds that a turn does not fail for a reason that is none, and that
// its answer is made of the results of all its calls, in order.
func (t *trial) outcome(started, end client.Event, marred bool) {
	f := field(end)
	if end.Type == "turn.failed" && f.Reason != "restarts" {
		t.wrong([]client.Event{started, end}, "turn %s failed: %s", end.Turn, f.Reason)
	}
	if end.Type != "turn.completed" || marred || len(f.Inputs) != 1 {
		return
	}
	if s := t.sent[f.Inputs[0]]; s != nil && f.output() != digest(s.answer()) {
		t.wrong([]client.Event{started, end}, "turn %s should have said %.2000q", end.Turn, s.answer())
	}
}

// call is what the log says of a tool call.
type call struct {
	requested client.Event
	key       string
	onUnknown messages.OnUnknown
	attempts  int
	outcomes  int
	verdicts  []string // granted and denied
	dry       bool     // its newest attempt
	left      bool     // to the source of the branch
}

// calls holds of every tool call: it is asked for before it starts, it starts
// before it has an outcome, it has one outcome before its turn ends, and its key
// stays the same.
func (t *trial) calls() {
	open := make(map[messages.CallID]*call)
	for _, ev := range t.log {
		f := field(ev)
		c := open[f.Call]
		switch ev.Type {
		case "tool.requested":
			open[f.Call] = &call{requested: ev}
			continue
		case "tool.started":
			t.start(c, ev)
		case "agent.forked", "agent.imported":
			for _, c := range open {
				c.key, c.left = "", true
			}
		case "approval.granted", "approval.denied":
			if c != nil {
				c.verdicts = append(c.verdicts, ev.Type)
			}
		case "tool.unknown":
			t.doubtful(c, ev)
		case "tool.completed", "tool.failed", "tool.denied", "tool.skipped":
			t.settled(c, ev)
		case "turn.completed", "turn.failed", "turn.aborted":
			for id, c := range open {
				if c.outcomes != 1 {
					t.wrong([]client.Event{c.requested, ev}, "call %s has %d outcomes at the end of its turn", id, c.outcomes)
				}
			}
			clear(open)
		}
	}
}

func (t *trial) start(c *call, ev client.Event) {
	f := field(ev)
	switch {
	case c == nil:
		t.wrong([]client.Event{ev}, "call %s was started but not asked for in this turn", f.Call)
		return
	case f.Tool == gated && !slices.Equal(c.verdicts, []string{"approval.granted"}):
		t.wrong(t.about(string(f.Call)), "call %s was started after the decisions %v", f.Call, c.verdicts)
	case c.outcomes > 0:
		t.wrong(t.about(string(f.Call)), "call %s was started after its outcome", f.Call)
	case c.key != "" && c.key != f.Key:
		t.wrong(t.about(string(f.Call)), "call %s has two keys", f.Call)
	case f.Attempt != c.attempts+1:
		t.wrong(t.about(string(f.Call)), "attempt %d of call %s follows attempt %d", f.Attempt, f.Call, c.attempts)
	}
	c.key, c.onUnknown, c.attempts, c.dry = f.Key, f.OnUnknown, f.Attempt, f.Dry
}

// doubtful holds that a person is asked only about outcomes that cannot be found out otherwise.
func (t *trial) doubtful(c *call, ev client.Event) {
	if c != nil && (c.dry || c.left) {
		return
	}
	if c == nil || c.onUnknown != messages.Pause && (c.onUnknown != messages.Reconcile || !unsure(c.key)) {
		t.wrong(t.about(string(field(ev).Call)), "the outcome of call %s need not be unknown", field(ev).Call)
	}
}

// settled holds an outcome against the ledger: a result must have been earned.
func (t *trial) settled(c *call, ev client.Event) {
	if c == nil {
		t.wrong([]client.Event{ev}, "%s of a call that was not asked for in this turn", ev.Type)
		return
	}
	c.outcomes++
	if ev.Type != "tool.completed" {
		return
	}
	if c.onUnknown == "" {
		return // the task of a child: offspring holds it against the log below
	}
	done := "effect"
	if c.onUnknown == messages.ReadOnly {
		done = "invoked"
	}
	var asked entry
	if f := field(c.requested); json.Unmarshal([]byte(f.Arguments), &asked) == nil && asked.Input != "" {
		asked.Tool = f.Tool
		if digest(asked.result()) != field(ev).output() {
			t.wrong([]client.Event{c.requested, ev}, "the result is not byte for byte what the program said")
		}
	}
	if !c.dry && !t.earned[done+" "+c.key] {
		t.wrong([]client.Event{c.requested, ev}, "the ledger has no %s under key %s", done, c.key)
	}
}

// decisions holds that every acknowledged decision of the person is in the log,
// behind what the person was asked by.
func (t *trial) decisions() {
	for _, c := range t.decided {
		tells := func(ev client.Event) bool { return ev.Type == c.told && field(ev).Call == c.Call && ev.N > c.after }
		if c.Agent == t.agent && !slices.ContainsFunc(t.log, tells) {
			t.wrong(t.about(string(c.Call)), "the person's decision about call %s is lost: no %s after event %d", c.Call, c.told, c.after)
		}
	}
}

// commands holds that every acknowledged command had its effect once, and no
// refused one had any.
func (t *trial) commands() {
	effects, noops := make(map[string]int), make(map[string]int)
	for _, ev := range t.log {
		switch f := field(ev); ev.Type {
		case "state.patched":
			for id := range f.Patch {
				effects[id]++
			}
		case "turn.aborted":
			if f.By == "interrupt" || f.By == "abort" {
				effects[f.Reason]++
			}
		case "input.cancelled", "agent.cleared", "approval.forgotten", "budget.raised", "turn.resumed":
			effects[f.Reason]++
		case "turn.started":
			if f.Continues != "" {
				effects[f.Reason]++
			}
		case "command.noop":
			noops[f.Command]++
		}
	}
	silent := make(map[string]int)
	for _, s := range t.sent {
		if s.Agent != t.agent || s.Command == "input" || s.Command == "task" || s.Command == "delete" {
			continue
		}
		switch n := effects[s.ID]; {
		case n > 1 || s.Refused != "" && n > 0:
			t.wrong(t.about(s.ID), "%s %s (refused: %q) had %d effects", s.Command, s.ID, s.Refused, n)
		case n == 0 && s.Life > 0 && s.Command == "set_state":
			t.wrong(nil, "set_state %s, answered in life %d, is lost", s.ID, s.Life)
		case n == 0 && s.Life > 0:
			silent[s.Command]++
		}
	}
	for command, n := range silent {
		if noops[command] != n {
			t.wrong(nil, "%d commands %s changed nothing, %d of them are in the log", n, command, noops[command])
		}
	}
}

// invocations holds that every program that ran was intended first, and that no
// attempt ran twice.
func (t *trial) invocations() {
	type attempt struct {
		key string
		n   int
	}
	intended, ran := make(map[attempt]bool), make(map[attempt]int)
	for _, log := range t.logs {
		for _, ev := range log {
			if ev.Type == "tool.started" && !field(ev).Dry {
				intended[attempt{field(ev).Key, field(ev).Attempt}] = true
			}
		}
	}
	for _, e := range t.ledger {
		if e.What == "invoked" {
			ran[attempt{e.Key, e.Attempt}]++
		}
	}
	for a, n := range ran {
		if agent := agentOf(a.key); !intended[a] && !isMortal(agent) && !t.removed(agent) { // their logs are gone
			t.wrong(nil, "attempt %d of %s ran, and no tool.started in a log says so", a.n, a.key)
		}
		if n > 1 {
			t.wrong(nil, "attempt %d of %s ran %d times", a.n, a.key, n)
		}
	}
}

// agentOf is whose call has an idempotency key.
func agentOf(key string) string {
	parts := strings.Split(key, "/")
	return strings.Join(parts[:max(len(parts)-2, 0)], "/")
}

// effects holds that nothing was done twice: neither under one key, nor, but for what branches did, for
// the same place in the plan of an input.
func (t *trial) effects() {
	type place struct {
		branch, input string
		position      int
	}
	keys, places := make(map[string]int), make(map[place][]string)
	for _, e := range t.ledger {
		if e.What == "effect" {
			keys[e.Key]++
			at := place{t.branchOf(agentOf(e.Key)), e.Input, e.Position}
			places[at] = append(places[at], e.Tool+" "+e.Key)
		}
	}
	for key, n := range keys {
		if n > 1 {
			t.wrong(nil, "%d effects under key %s", n, key)
		}
	}
	for p, by := range places {
		if len(by) > 1 {
			t.wrong(nil, "call %d of input %s had its effect %d times: %v", p.position, p.input, len(by), by)
		}
	}
}
