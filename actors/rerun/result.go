package rerun

import (
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Outcome is what came of running an agent again.
type Outcome string

// The outcomes. That a model answers otherwise is no failure.
const (
	Same       Outcome = "same"       // the same calls and the same answers
	Differs    Outcome = "differs"    // others
	Failed     Outcome = "failed"     // the run ended early: a model could not be asked, or a command is refused
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
	// Difference is the first one. Nil: there is none. Turns that a run which ended early did not end
	// are none.
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
