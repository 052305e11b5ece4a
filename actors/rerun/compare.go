package rerun

import (
	"cmp"
	"maps"
	"slices"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// compare compares both runs. why is why the new one has ended early.
func (r *Result) compare(recorded, replayed *AgentRun, rec *record, why string) {
	rec.mu.Lock() // a tool that was left may still run
	defer rec.mu.Unlock()
	if r.Result, r.Why = Same, why; why != "" {
		r.Result = Failed
	}
	r.Unrecorded, r.Ran = slices.Clone(rec.unrecorded), maps.Clone(rec.ran)
	r.Used = &Usages{recorded.Used, replayed.Used}
	r.Turns = paired(recorded.Turns, replayed.Turns)
	for i := range r.Turns {
		t := &r.Turns[i]
		if !r.compared(t) {
			continue
		}
		r.Calls.add(callsOf(t.Recorded), callsOf(t.Now))
		d := differing(t.Recorded, t.Now)
		if t.Same = d == nil; !t.Same && r.Difference == nil {
			d.Turn, r.Difference = i+1, d
		}
	}
	if r.Result == Same && r.Difference != nil {
		r.Result = Differs
	}
}

// compared reports whether a turn can be compared: a run that ended early did not end the turn that it
// was in, and has none of those after it.
func (r *Result) compared(t *Turn) bool {
	if r.Result != Failed {
		return true
	}
	return t.Now != nil && t.Now.Status != projections.Running && t.Now.Status != projections.Paused && t.Now.Reason != messages.FailedModel
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
