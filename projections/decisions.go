package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Decisions is what an agent remembers of decisions about its tools: later
// calls of them are not asked about. The zero value remembers nothing.
type Decisions struct {
	at   time.Time
	by   *messages.Person
	list []messages.Remembered
}

// At says when the events that are applied next were recorded.
func (d *Decisions) At(at time.Time) { d.at = at.UTC() }

// By implements [Attributed].
func (d *Decisions) By(p *messages.Person) { d.by = p }

// Apply folds event number n.
func (d *Decisions) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ApprovalGranted:
		if ev.Remember {
			d.remember(messages.Remembered{Tool: ev.Tool, Decision: "granted", Reason: ev.Reason, Person: d.by, N: n, At: d.at})
		}
	case messages.ApprovalDenied:
		if ev.Remember {
			d.remember(messages.Remembered{Tool: ev.Tool, Decision: "denied", Text: ev.Text, Reason: ev.Reason, Person: d.by, N: n, At: d.at})
		}
	case messages.ApprovalForgotten:
		d.forget(ev.Tool)
	case messages.AgentCleared, messages.AgentDeleted:
		d.list = nil
	}
}

func (d *Decisions) forget(tool string) {
	d.list = slices.DeleteFunc(d.list, func(r messages.Remembered) bool { return r.Tool == tool })
}

// remember puts r in the place of an earlier decision about the tool.
func (d *Decisions) remember(r messages.Remembered) {
	d.forget(r.Tool)
	d.list = append(d.list, r)
}

// Remembered is what agent a remembers, one decision a tool, oldest first.
func (d *Decisions) Remembered(a messages.AgentID) []messages.Remembered {
	list := slices.Clone(d.list)
	for i := range list {
		list[i].Agent = a
	}
	return list
}
