package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// The decisions about a call.
const (
	Granted = "granted"
	Denied  = "denied"
)

// Decisions are the decisions about tools that an agent remembers: they hold for later calls.
// The zero value remembers none.
type Decisions struct {
	List []Decision // one for each tool, oldest first
	// Baseline is what a clear takes a fork back to.
	Baseline []Decision

	origin
}

// Decision is a decision for all later calls of a tool.
type Decision struct {
	Tool string
	// Decision is Granted or Denied, Text what the model reads of a denial.
	Decision, Text, Reason string
	N                      messages.EventNumber // of the event that remembers it
	// At and Person are set where [Decisions.At] was called.
	At     time.Time
	Person *messages.Person
}

// Apply folds event number n.
func (d *Decisions) Apply(n messages.EventNumber, ev messages.Event) {
	if messages.Is(ev.EventType(), messages.EndsAgent) {
		d.List, d.Baseline = nil, nil
	} else if messages.Is(ev.EventType(), messages.ClearsAgent) {
		d.List = slices.Clone(d.Baseline)
	} else if _, forked := ev.(messages.AgentForked); forked {
		d.Baseline = slices.Clone(d.List)
	} else if forgotten, ok := ev.(messages.ApprovalForgotten); ok {
		d.forget(forgotten.Tool)
	} else if given := decisionOf(ev); given.remember {
		d.forget(given.Tool)
		given.N, given.At, given.Person = n, d.at, d.by
		d.List = append(d.List, given.Decision)
	}
}

// givenDecision is a decision about one call.
type givenDecision struct {
	Decision
	by       messages.By // as in the event
	remember bool        // it holds for later calls of the tool, too
}

// decisionOf returns the decision that an event reports; the zero value: none.
func decisionOf(ev messages.Event) givenDecision {
	switch ev := ev.(type) {
	case messages.ApprovalGranted:
		return givenDecision{Decision{Tool: ev.Tool, Decision: Granted, Reason: ev.Reason}, ev.By, ev.Remember}
	case messages.ApprovalDenied:
		return givenDecision{Decision{Tool: ev.Tool, Decision: Denied, Text: ev.Text, Reason: ev.Reason}, ev.By, ev.Remember}
	}
	return givenDecision{}
}

func (d *Decisions) forget(tool string) {
	d.List = without(d.List, func(r *Decision) bool { return r.Tool == tool })
}

// Of returns the decision about a tool, and reports whether there is one.
func (d *Decisions) Of(tool string) (Decision, bool) {
	if r := firstOf(d.List, func(r *Decision) bool { return r.Tool == tool }); r != nil {
		return *r, true
	}
	return Decision{}, false
}

// Remembered returns what agent a remembers, one decision for each tool, oldest first.
func (d *Decisions) Remembered(a messages.AgentID) []messages.Remembered {
	var list []messages.Remembered
	for _, r := range d.List {
		list = append(list, messages.Remembered{Agent: a, Tool: r.Tool, Decision: r.Decision, Text: r.Text, Reason: r.Reason, Person: r.Person, N: r.N, At: r.At})
	}
	return list
}
