package projections

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// View is a fold over one agent's events. Every view of this package is one
// for some agent, and so is any type of yours with this method.
type View interface {
	// Apply folds event number n. Events come in order, without gaps.
	Apply(n messages.EventNumber, ev messages.Event)
}

// Timed is a View that shows when events were recorded, or who asked for them.
type Timed interface {
	View
	// At sets when the events that are applied next were recorded, and whose command
	// recorded them. Nil: none is named.
	At(at time.Time, by *messages.Person)
}

// Framed is a View that shows more of what events are the result of, such as the command or its
// trace context.
type Framed interface {
	View
	// InFrame sets the frame whose events are applied next. It is called in place of At.
	InFrame(f *messages.Frame)
}

// Fold applies a frame's events to every view, those after event number upto
// left out; upto 0 means all. It reports whether a later frame may hold more:
// to see an agent as of event n, fold its frames until Fold returns false.
func Fold(f *messages.Frame, upto messages.EventNumber, views ...View) (more bool) {
	for _, v := range views {
		switch v := v.(type) {
		case Framed:
			v.InFrame(f)
		case Timed:
			v.At(f.Time, f.Cause.Person())
		}
	}
	for i, ev := range f.Events {
		n := f.First + messages.EventNumber(i)
		if upto != 0 && n > upto {
			return false
		}
		for _, v := range views {
			v.Apply(n, ev)
		}
	}
	return upto == 0 || f.Last() < upto
}

// origin is embedded in every Timed view of this package, which it makes Framed.
type origin struct {
	at    time.Time
	by    *messages.Person
	trace messages.TraceContext
}

// At implements [Timed].
func (o *origin) At(at time.Time, by *messages.Person) { o.at, o.by = at.UTC(), by }

// InFrame implements [Framed].
func (o *origin) InFrame(f *messages.Frame) {
	o.At(f.Time, f.Cause.Person())
	o.Trace(f.Trace)
}

// Trace sets the trace context of the command that recorded the events that are applied next. Empty:
// there is none. It is for callers without a frame.
func (o *origin) Trace(t messages.TraceContext) { o.trace = t }

// event is an event with all that several folds read of it.
type event struct {
	messages.Event
	messages.Fields
	origin
	n messages.EventNumber
}

// event returns event number n with its fields and origin.
func (o *origin) event(n messages.EventNumber, ev messages.Event) *event {
	return &event{ev, messages.FieldsOf(ev), *o, n}
}
