package projections

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Finding is something evident about the event that is explained.
type Finding struct {
	// Kind is a word to branch on: `rerun`, `asked_twice`, `asked_again`, `continued`, `resent`,
	// `repeats`, `parent` or `sibling`.
	Kind string `json:"kind"`
	// Text is the finding for a person. It names events by their numbers.
	Text string `json:"text"`
	// Events are those that the text names, first those of the call or input that is repeated.
	Events []FoundEvent `json:"events"`
}

// FoundEvent names an event of an agent.
type FoundEvent struct {
	Agent messages.AgentID     `json:"agent"`
	N     messages.EventNumber `json:"n"`
}

// find adds a finding about events of the agent.
func (w *Why) find(kind, text string, events ...messages.EventNumber) {
	f := Finding{Kind: kind, Text: text, Events: []FoundEvent{}}
	for _, n := range events {
		f.Events = append(f.Events, FoundEvent{w.Agent, n})
	}
	w.Findings = append(w.Findings, f)
}

// findRuns finds that a call ran more than once. Calls of tools that only read are left out, as they are
// by the other findings.
func (w *Why) findRuns(c *causedCall) {
	if len(c.starts) < 2 || c.OnUnknown == messages.ReadOnly {
		return
	}
	events := make([]string, len(c.starts))
	numbers := make([]messages.EventNumber, len(c.starts))
	for i, l := range c.starts {
		events[i], numbers[i] = fmt.Sprint(l.N), l.N
	}
	why := "it was started again because its tool allows that (on_unknown " + string(c.OnUnknown) + ")"
	if last := c.starts[len(c.starts)-1]; last.Command == (messages.Decide{}).CommandType() {
		why = fmt.Sprintf("the outcome of the run before was unknown (event %d), and %s decided to run it again (event %d)", c.unknown, personName(last.Person), last.N)
	}
	w.find("rerun", fmt.Sprintf("this call ran %d times (events %s) under one idempotency key, %s: %s", len(events), strings.Join(events, ", "), c.Key, why), numbers...)
}

// findEqual adds the equal calls of the agent, and explains the newest one before and the first one after
// the call of the event. A call is said to repeat another one where [MarkRepeats] says so.
func (w *Why) findEqual(c *Causes) {
	var before, after []madeCall
	for _, m := range c.calls() {
		switch {
		case m.sum != w.call.sum || m.sum == 0 || m.line.N == w.call.line.N:
		case m.line.N < w.call.line.N:
			before = append(before, m)
		default:
			after = append(after, m)
		}
	}
	w.addEqual(CauseRepeats, before[max(0, len(before)-maxEqual):], len(before))
	w.addEqual(CauseRepeated, after[:min(len(after), maxEqual)], len(after))
	acted := func(m *madeCall) bool { return m.acted }
	if first := lastOf(before, acted); first != nil {
		kind, why, at := explainRepeat(first, w.call)
		w.find(kind, fmt.Sprintf("this call repeats %s, which %s: %s", first.ref(), first.became(), why), append([]messages.EventNumber{first.line.N, w.call.line.N}, at...)...)
	}
	second := firstOf(after, acted)
	if second == nil && len(after) > 0 {
		second = &after[0]
	}
	if second != nil && w.call.acted {
		kind, why, at := explainRepeat(w.call, second)
		w.find(kind, fmt.Sprintf("%s, which %s, repeats this call: %s", second.ref(), second.became(), why), append([]messages.EventNumber{w.call.line.N, second.line.N}, at...)...)
	}
}

// maxEqual is the most lines about equal calls before the call, and after it.
const maxEqual = 10

// addEqual adds lines about equal calls, of which there are some number in all.
func (w *Why) addEqual(r Relation, list []madeCall, all int) {
	for i, m := range list {
		l := m.line
		l.Relation, l.Agent = r, w.Agent
		if i == len(list)-1 {
			l.More = all - len(list)
		}
		w.equal = append(w.equal, l)
	}
}

// calls returns the calls of the agent, oldest first.
func (c *Causes) calls() []madeCall {
	list := c.made[:len(c.made):len(c.made)]
	for _, t := range c.turns {
		for _, call := range t.calls {
			list = append(list, call.made())
		}
	}
	slices.SortStableFunc(list, func(a, b madeCall) int { return cmp.Compare(a.line.N, b.line.N) })
	return list
}

// ref names the call in a sentence.
func (m *madeCall) ref() string {
	return fmt.Sprintf("call %s of turn %s (event %d)", m.line.Call, m.line.Turn, m.line.N)
}

// became returns what became of the call, as a part of a sentence.
func (m *madeCall) became() string {
	switch {
	case m.unknown == 0 && m.outcome == CallUnknown:
		return "has no known outcome"
	case m.unknown == 0 && m.outcome == CallRunning:
		return "is running"
	case m.unknown == 0:
		return string(m.outcome)
	case m.decided == nil:
		return fmt.Sprintf("had an unknown outcome (event %d)", m.unknown)
	}
	return fmt.Sprintf("had an unknown outcome (event %d) until %s decided it (event %d)", m.unknown, personName(m.decided.Person), m.decided.N)
}

// explainRepeat returns why the second of two equal calls of an agent was made, as the kind of a finding,
// a part of a sentence, and the events that this names.
func explainRepeat(first, second *madeCall) (kind, text string, events []messages.EventNumber) {
	switch a, b := first.turn, second.turn; {
	case a == b && first.answer == second.answer:
		return "asked_twice", fmt.Sprintf("the model asked for both in one answer (event %d)", second.answer), []messages.EventNumber{second.answer}
	case a == b:
		return "asked_again", fmt.Sprintf("the model asked for it again in the same turn (event %d)", second.answer), []messages.EventNumber{second.answer}
	case b.continuesTurn(a):
		return "continued", fmt.Sprintf("turn %s continues turn %s (event %d)", b.id, a.id, b.started.N), []messages.EventNumber{b.started.N}
	default:
		for _, again := range b.inputs {
			for _, in := range a.inputs {
				if in != again && in.content != "" && in.content == again.content {
					return "resent", resent(in, again), []messages.EventNumber{in.N, again.N}
				}
			}
		}
		return "repeats", fmt.Sprintf("the model asked for it again in another turn (event %d)", second.answer), []messages.EventNumber{second.answer}
	}
}

// resentText returns that an input was sent before under another id.
func resentText(in *causedInput) string { return resent(in.resends, in) }

func resent(first, second *causedInput) string {
	later, digits := second.At.Sub(first.At), time.Second
	if later < 10*time.Second {
		digits = time.Millisecond
	}
	return fmt.Sprintf("input %s (event %d) has the content of input %s (event %d), and came %v later under another id",
		second.id, second.N, first.id, first.N, later.Round(digits))
}

// findElsewhere finds an equal call of another agent, and explains it by why.
func (w *Why) findElsewhere(kind string, a messages.AgentID, c *Causes, why string) {
	if w.call == nil || w.call.sum == 0 {
		return
	}
	calls := c.calls()
	m := firstOf(calls, func(m *madeCall) bool { return m.acted && m.sum == w.call.sum })
	if m == nil {
		return
	}
	l := m.line
	l.Relation, l.Agent = CauseEqual, a
	w.equal = append(w.equal, l)
	w.Findings = append(w.Findings, Finding{
		Kind: kind, Text: fmt.Sprintf("agent %s made the same call, %s, which %s: %s", a, m.ref(), m.became(), why),
		Events: []FoundEvent{{a, l.N}, {w.Agent, w.call.line.N}},
	})
}

// siblingText returns how another child of the direct parent came about.
func (w *Why) siblingText(s *spawnedChild) string {
	text := fmt.Sprintf("both are children of %s, spawned by its calls %s and %s (events %d and %d)", w.direct, s.Call, w.task.Call, s.N, w.task.N)
	if s.answer == w.task.answer {
		text += fmt.Sprintf(", which one answer of its model asked for (event %d)", s.answer)
	}
	return text
}
