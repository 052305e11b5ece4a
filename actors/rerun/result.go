package rerun

import (
	"cmp"
	"maps"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Outcome is what came of running an agent again.
type Outcome string

// The outcomes. That a model answers otherwise is no failure.
const (
	Same       Outcome = "same"       // the same calls and the same answers
	Differs    Outcome = "differs"    // others
	Failed     Outcome = "failed"     // the run ended early: a model could not be asked, or an input is refused
	Unreadable Outcome = "unreadable" // the stream cannot be run again, or its kind is not defined
)

// Result is what came of running an agent again. Its names in JSON are promises.
type Result struct {
	Agent  messages.AgentID `json:"agent"`
	Result Outcome          `json:"result"`
	// Why is why the run has failed, or could not be made. Empty: neither.
	Why string `json:"why,omitempty"`
	// Turns are those of both sides, in the order of the record.
	Turns []Turn `json:"turns,omitempty"`
	Calls Calls  `json:"calls"`
	// Difference is the first one. Nil: there is none.
	Difference *Difference `json:"difference,omitempty"`
	// Unrecorded is what was asked for and is not on record.
	Unrecorded []Unrecorded `json:"unrecorded,omitempty"`
	// Tools are calls of the record whose tool has another result now, if tools have run without a model.
	Tools []Changed `json:"tools,omitempty"`
	// Ran counts the calls of tools that ran, by name, Skipped those that may not run.
	Ran     map[string]int `json:"ran,omitempty"`
	Skipped map[string]int `json:"skipped,omitempty"`
	// Used is what the models consumed, summaries included.
	Used *Usages `json:"used,omitempty"`
	// Grades are the scores. Nil: there was no grader.
	Grades *Grades `json:"grades,omitempty"`
}

// Turn is one turn of the record, and of the new run.
type Turn struct {
	// Same reports that the calls and the answer are equal.
	Same bool `json:"same"`
	// Recorded and Now are nil if there is no such turn on that side.
	Recorded *projections.Exchange `json:"recorded,omitempty"`
	Now      *projections.Exchange `json:"now,omitempty"`
}

// Calls counts the calls of tools. Those with the same tool and equal arguments are equal; of the others,
// two calls of a tool, one of each side, are one that has changed.
type Calls struct {
	Equal   int `json:"equal"`
	Changed int `json:"changed"`
	Missing int `json:"missing"` // on record alone
	New     int `json:"new"`
}

// Difference is the first one: a call, or the end of a turn.
type Difference struct {
	// Turn counts from 1.
	Turn     int    `json:"turn"`
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
}

// Usages are what the models of both sides consumed.
type Usages struct {
	Recorded projections.Used `json:"recorded"`
	Now      projections.Used `json:"now"`
}

// Plus returns the sum of both.
func (u Usages) Plus(v Usages) Usages {
	return Usages{u.Recorded.Plus(v.Recorded), u.Now.Plus(v.Now)}
}

// The runs of an agent.
const (
	RunRecorded = "recorded"
	RunReplayed = "replayed"
)

// AgentRun is one run of an agent, as a grader gets it. Its names in JSON are promises.
type AgentRun struct {
	Agent messages.AgentID `json:"agent"`
	// Run is recorded or replayed.
	Run   string                 `json:"run"`
	Turns []projections.Exchange `json:"turns"`
	// Messages are the history after the last turn, as `reprise history -o json` has it.
	Messages []projections.HistoryItem `json:"messages"`
	Used     projections.Used          `json:"used"`
}

// runOf returns what frames record.
func runOf(agent messages.AgentID, run string, frames []*messages.Frame) *AgentRun {
	var x projections.Exchanges
	var h projections.History
	var u projections.Usage
	for _, f := range frames {
		projections.Fold(f, 0, &x, &h, &u)
	}
	return &AgentRun{Agent: agent, Run: run, Turns: append([]projections.Exchange{}, x.Exchanges()...), Messages: append([]projections.HistoryItem{}, h.View()...), Used: u.Total()}
}

// compare compares both runs. why is why the new one has ended early.
func (r *Result) compare(recorded, replayed *AgentRun, rec *record, why string) {
	rec.mu.Lock() // a tool that was left may still run
	defer rec.mu.Unlock()
	r.Result, r.Why, r.Unrecorded, r.Ran = Same, why, slices.Clone(rec.unrecorded), maps.Clone(rec.ran)
	r.Used = &Usages{recorded.Used, replayed.Used}
	r.Turns = paired(recorded.Turns, replayed.Turns)
	for i := range r.Turns {
		t := &r.Turns[i]
		r.Calls.add(callsOf(t.Recorded), callsOf(t.Now))
		d := differing(t.Recorded, t.Now)
		if t.Same = d == nil; !t.Same && r.Difference == nil {
			d.Turn, r.Difference, r.Result = i+1, d, Differs
		}
	}
	if why != "" {
		r.Result = Failed
	}
}

// paired returns the turns of both sides by the inputs that began them.
func paired(recorded, now []projections.Exchange) (list []Turn) {
	at := make(map[string]int)
	for i := range recorded {
		at[begunBy(recorded[i])] = i
		list = append(list, Turn{Recorded: &recorded[i]})
	}
	for i := range now {
		if j, ok := at[begunBy(now[i])]; ok && list[j].Now == nil {
			list[j].Now = &now[i]
		} else {
			list = append(list, Turn{Now: &now[i]})
		}
	}
	return list
}

// begunBy returns the input that a turn began with.
func begunBy(x projections.Exchange) string {
	if len(x.Inputs) == 0 {
		return ""
	}
	return x.Inputs[0].ID
}

func callsOf(x *projections.Exchange) []projections.ExchangeCall {
	if x == nil {
		return nil
	}
	return x.Calls
}

// add counts the calls of a turn.
func (c *Calls) add(recorded, now []projections.ExchangeCall) {
	asks, missing := make(map[string]int), make(map[string]int) // the latter by tool
	for _, call := range recorded {
		asks[call.Asks()]++
		missing[call.Tool]++
	}
	var others []projections.ExchangeCall
	for _, call := range now {
		if asks[call.Asks()] == 0 {
			others = append(others, call)
			continue
		}
		asks[call.Asks()]--
		missing[call.Tool]--
		c.Equal++
	}
	for _, call := range others {
		if missing[call.Tool] == 0 {
			c.New++
			continue
		}
		missing[call.Tool]--
		c.Changed++
	}
	for _, n := range missing {
		c.Missing += n
	}
}

// differing returns where two turns part; nil if they do not.
func differing(recorded, now *projections.Exchange) *Difference {
	was, is := callsOf(recorded), callsOf(now)
	for i := range max(len(was), len(is)) {
		if i < len(was) && i < len(is) && was[i].Asks() == is[i].Asks() {
			continue
		}
		return &Difference{Recorded: sideText(recorded, i), Now: sideText(now, i)}
	}
	if recorded != nil && now != nil && recorded.Status == now.Status && recorded.Answer == now.Answer {
		return nil
	}
	return &Difference{Recorded: sideText(recorded, len(was)), Now: sideText(now, len(is))}
}

// sideText describes the i-th call of a turn, or how it ended if it has fewer.
func sideText(x *projections.Exchange, i int) string {
	switch {
	case x == nil:
		return "no turn"
	case i < len(x.Calls):
		return callText(x.Calls[i].Tool, x.Calls[i].Arguments)
	case x.Status == projections.Completed:
		return x.Answer
	}
	text := string(x.Status)
	if why := cmp.Or(x.Message, x.Reason); why != "" {
		text += ": " + why
	}
	return text
}

// callText describes a call.
func callText(name, arguments string) string { return name + "(" + arguments + ")" }
