package projections

import (
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Origin is where a fork or an imported agent comes from.
type Origin struct {
	// Parent is the address of the agent that it comes from.
	Parent messages.AgentID `json:"parent"`
	// Imported reports whether the events came from a file: Parent is an agent of the installation
	// that the file was exported from.
	Imported bool `json:"imported,omitempty"`
	// Detached reports whether the fork has a copy of its parent's events: the parent may be gone.
	Detached bool `json:"detached,omitempty"`
	// At is the newest event that both have.
	At messages.EventNumber `json:"at"`
	// Depth is how many logs of others its log begins with: 1 if the parent is no fork, or if the
	// events before its own are the agent's own copy.
	Depth int `json:"depth"`
	// Tools reports whether the fork runs its tools. If not, calls have recorded results, or wait
	// for a person.
	Tools bool `json:"tools"`
	// Set is what it has in place of its kind's definition.
	Set messages.ForkChanges `json:"set,omitzero"`
}

// The statuses of a Fork.
const (
	ForkPending = "pending" // it is to begin
	ForkBegun   = "begun"
)

// Owned reports whether the events up to At are kept by the agent itself.
func (o *Origin) Owned() bool { return o.Imported || o.Detached }

// Fork is a fork of an agent: a line of the view forks.
type Fork struct {
	// N is its fork.requested, or the fork.settled of one that began after it was refused.
	N messages.EventNumber `json:"n"`
	// Agent is the address of the fork.
	Agent messages.AgentID `json:"agent"`
	// At is the newest event that both have.
	At messages.EventNumber `json:"at"`
	// Status is `pending` or `begun`.
	Status string `json:"status"`
	// Set is what the fork has in place of its kind's definition.
	Set    messages.ForkChanges `json:"set,omitzero"`
	Reason string               `json:"reason,omitempty"`
	// Requested is when it was asked for.
	Requested time.Time `json:"requested,omitzero"`
	// Person is who asked for it. Nil: no person is named.
	Person *messages.Person `json:"person,omitempty"`
	// Begin is the id of the command that it begins with.
	Begin string `json:"begin"`
}

// Forks are where an agent was forked from, and the forks that were made of it. The zero value is
// an agent that is no fork and has none.
type Forks struct {
	// Origin is nil for an agent that is no fork and was not imported.
	Origin *Origin
	// List has the forks that have begun, or are to; oldest first.
	List []Fork

	origin
}

// Apply folds event number n.
func (f *Forks) Apply(n messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.ForkRequested:
		agent, _ := messages.ParseAgentID(ev.Fork) // zero where the log holds another address
		f.List = append(f.List, Fork{N: n, Agent: agent, At: ev.At, Status: ForkPending, Set: ev.Set, Reason: ev.Reason, Requested: f.at, Person: f.by, Begin: ev.Begin})
	case messages.ForkSettled:
		f.settled(n, ev)
	case messages.AgentForked:
		parent, _ := messages.ParseAgentID(ev.Parent)
		f.Origin, f.List = &Origin{Parent: parent, At: ev.At, Depth: f.Depth() + 1, Set: ev.Set}, nil
	case messages.AgentImported:
		source, _ := messages.ParseAgentID(ev.Source)
		f.Origin, f.List = &Origin{Parent: source, Imported: true, Depth: 1, At: ev.Last, Tools: !ev.Dry, Set: ev.Set}, nil
	case messages.ToolsEnabled:
		f.change(func(o *Origin) { o.Tools = true })
	case messages.ForkDetached:
		f.change(func(o *Origin) { o.Detached, o.Depth = true, 1 })
	default:
		if messages.Is(ev.EventType(), messages.EndsAgent) {
			f.Origin, f.List = nil, nil
		}
	}
}

// change sets something of the origin, which others may hold as it was.
func (f *Forks) change(set func(*Origin)) {
	if f.Origin != nil {
		changed := *f.Origin
		set(&changed)
		f.Origin = &changed
	}
}

// settled folds what became of a fork. One that was refused never was, unless it begins later.
func (f *Forks) settled(n messages.EventNumber, ev messages.ForkSettled) {
	is := func(x Fork) bool { return x.Begin == ev.Begin }
	if ev.Refused != "" {
		f.List = slices.DeleteFunc(slices.Clone(f.List), is)
	} else if i := slices.IndexFunc(f.List, is); i >= 0 {
		f.List = slices.Clone(f.List)
		f.List[i].Status = ForkBegun
	} else {
		agent, _ := messages.ParseAgentID(ev.Fork)
		f.List = append(slices.Clone(f.List), Fork{N: n, Agent: agent, At: ev.N - 1, Status: ForkBegun, Requested: f.at, Begin: ev.Begin})
	}
}

// Depth returns how many logs of others the agent's log begins with. 0: it is no fork.
func (f *Forks) Depth() int {
	if f.Origin == nil {
		return 0
	}
	return f.Origin.Depth
}

// Borrows reports whether an event of the agent is kept by its parent alone.
func (f *Forks) Borrows(n messages.EventNumber) bool {
	return f.Origin != nil && !f.Origin.Owned() && n <= f.Origin.At
}

// Dry reports whether the agent is a fork that does not run its tools.
func (f *Forks) Dry() bool { return f.Origin != nil && !f.Origin.Tools }

// Of returns the fork with this address; nil if there is none.
func (f *Forks) Of(agent messages.AgentID) *Fork {
	return firstOf(f.List, func(x *Fork) bool { return x.Agent == agent })
}

// Set returns what the agent has in place of its kind's definition.
func (f *Forks) Set() messages.ForkChanges {
	if f.Origin == nil {
		return messages.ForkChanges{}
	}
	return f.Origin.Set
}

// Lines returns the forks. The list is the caller's.
func (f *Forks) Lines() []Fork { return slices.Clone(f.List) }
