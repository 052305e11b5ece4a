package rerun

import (
	"crypto/rand"
	"sync"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Unrecorded is something that a run asked for and that is not on record.
type Unrecorded struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	// What is result or approval.
	What string `json:"what"`
}

// record answers from what is on record. Safe for concurrent use.
type record struct {
	tools Tools
	id    string // of the run
	mu    sync.Mutex
	calls projections.RecordedCalls
	// results and decisions are those that were not given yet, by what their calls ask.
	results, decisions map[string][]*projections.RecordedCall
	// given are the results that calls have got, for further attempts.
	given      map[callKey]*projections.RecordedCall
	unrecorded []Unrecorded
	ran        map[string]int
}

type callKey struct {
	turn messages.TurnID
	call messages.CallID
}

func newRecord(calls projections.RecordedCalls, tools Tools) *record {
	r := &record{tools: tools, id: rand.Text(), calls: calls, decisions: make(map[string][]*projections.RecordedCall), given: make(map[callKey]*projections.RecordedCall), ran: make(map[string]int)}
	r.results = r.calls.Results()
	for i := range r.calls.List {
		if c := &r.calls.List[i]; c.Approval != "" {
			asks := c.Asks()
			r.decisions[asks] = append(r.decisions[asks], c)
		}
	}
	return r
}

// result returns the recorded result of a call; nil if there is none.
func (r *record) result(key callKey, name, arguments string) *projections.RecordedCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, again := r.given[key]; again {
		return c
	}
	asks := projections.ExchangeCall{Tool: name, Arguments: arguments}.Asks()
	c := next(r.results, asks)
	if r.given[key] = c; c == nil {
		r.unrecorded = append(r.unrecorded, Unrecorded{name, arguments, "result"})
	}
	return c
}

// noDecision is what the model reads of a call about which no decision is on record.
const noDecision = "This call needs the approval of a person, and was not run: no decision about it is on record."

// decision returns the command with the recorded decision about a call that waits for approval.
func (r *record) decision(c projections.CallState) messages.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := noDecision
	switch was := next(r.decisions, c.Asks()); {
	case was == nil:
		r.unrecorded = append(r.unrecorded, Unrecorded{c.Tool, c.Arguments, "approval"})
	case was.Approval == projections.Granted:
		return messages.Approve{Call: c.ID, Turn: c.Turn}
	default:
		text = was.Output
	}
	return messages.Deny{Call: c.ID, Turn: c.Turn, Text: &text}
}

// next takes the first call of those that ask the same; nil if none is left.
func next(calls map[string][]*projections.RecordedCall, asks string) *projections.RecordedCall {
	list := calls[asks]
	if len(list) == 0 {
		return nil
	}
	calls[asks] = list[1:]
	return list[0]
}

// run counts a call of a tool that runs.
func (r *record) run(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran[name]++
}
