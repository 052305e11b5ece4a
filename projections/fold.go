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

// Timed is a View that shows times. At says when the events that are applied
// next were recorded.
type Timed interface {
	View
	At(at time.Time)
}

// Attributed is a View that shows who asked.
type Attributed interface {
	View
	// By sets whose command recorded the events that are applied next. Nil: no one is named.
	By(p *messages.Person)
}

// Fold applies a frame's events to every view, those after event number upto
// left out; upto 0 means all. It reports whether a later frame may hold more:
// to see an agent as of event n, fold its frames until Fold says false.
func Fold(f *messages.Frame, upto messages.EventNumber, views ...View) (more bool) {
	for _, v := range views {
		if t, ok := v.(Timed); ok {
			t.At(f.Time)
		}
		if b, ok := v.(Attributed); ok {
			b.By(f.Cause.Person())
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
