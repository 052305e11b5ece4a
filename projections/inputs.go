package projections

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// Input is an accepted input that no model has seen.
type Input struct {
	ID      string
	N       messages.EventNumber // of its input.accepted
	Size    int                  // of what a model is shown of its text by default, in bytes
	Options messages.InputOptions
	// Trace is the trace context that it came with. Empty: none.
	Trace messages.TraceContext
}

// Inputs are the accepted inputs of an agent that no model has seen, oldest first. The zero
// value has none.
type Inputs struct {
	// Queued wait for a turn of their own, Steered for the next model call of the running turn.
	Queued, Steered []Input
}

func (q *Inputs) apply(e *event) {
	switch ev := e.Event.(type) {
	case messages.InputAccepted:
		in := Input{ID: ev.Input, N: e.n, Size: TextSize(ev.Content), Options: ev.Options, Trace: e.trace}
		switch ev.Disposition {
		case messages.Steered:
			q.Steered = append(q.Steered, in)
		case messages.Started: // it goes before those that wait
			q.Queued = slices.Insert(q.Queued, 0, in)
		default:
			q.Queued = append(q.Queued, in)
		}
	case messages.InputRequeued:
		q.requeue(ev.Input)
	default:
		if e.Is(messages.AdmitsInputs | messages.EndsInput) {
			q.drop(messages.InputsOf(ev))
		}
	}
}

// requeue puts a steered input back among those that wait, by its age.
func (q *Inputs) requeue(id string) {
	i := slices.IndexFunc(q.Steered, func(in Input) bool { return in.ID == id })
	if i < 0 {
		return
	}
	in := q.Steered[i]
	q.Steered = without(q.Steered, func(in *Input) bool { return in.ID == id })
	at := 0
	for at < len(q.Queued) && q.Queued[at].N < in.N {
		at++
	}
	q.Queued = slices.Insert(q.Queued, at, in)
}

func (q *Inputs) drop(ids []string) {
	if len(ids) > 0 {
		named := func(in *Input) bool { return slices.Contains(ids, in.ID) }
		q.Queued, q.Steered = without(q.Queued, named), without(q.Steered, named)
	}
}

// TextSize returns how many bytes of the texts of c a model is shown by default.
func TextSize(c messages.Content) int {
	size := 0
	for i := range c {
		if size += len(c[i].Text); c[i].Type == "text" {
			size += sizeOfBlob(c[i].Blob)
		}
	}
	return size
}

// Accepted returns the event that accepted the input with this id. 0: it is not among them.
func (q *Inputs) Accepted(id string) messages.EventNumber {
	for _, list := range [...][]Input{q.Queued, q.Steered} {
		for i := range list {
			if list[i].ID == id {
				return list[i].N
			}
		}
	}
	return 0
}

// QueuedIDs returns the ids of Queued.
func (q *Inputs) QueuedIDs() []string { return idsOf(q.Queued) }

// SteeredIDs returns the ids of Steered.
func (q *Inputs) SteeredIDs() []string { return idsOf(q.Steered) }

func idsOf(list []Input) (ids []string) {
	for i := range list {
		ids = append(ids, list[i].ID)
	}
	return ids
}
