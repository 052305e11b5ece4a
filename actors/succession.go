package actors

import (
	"cmp"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// succession is the change from a turn to that of an input which waited for its end.
// An interrupt or abort that came before is about the turn that ran then, and not about the
// next one, which begins with the same append. It is not rebuilt when the agent is loaded
// again. The zero value is none.
type succession struct {
	ended messages.TurnID
	at    time.Time // when the log had it
}

// fold notes what a frame that is now in the log changed. An input that begins its own
// turn is no change: what comes behind it in order may be about that turn.
func (s *succession) fold(f *messages.Frame) {
	ended, waited := messages.TurnID(""), true
	for _, ev := range f.Events {
		in, accepted := ev.(messages.InputAccepted)
		switch t := ev.EventType(); {
		case messages.Is(t, messages.EndsTurn):
			ended = cmp.Or(ended, messages.TurnOf(ev))
		case accepted:
			waited = waited && in.Disposition != messages.Started
		case messages.Is(t, messages.BeginsTurn):
			*s = succession{}
			if ended != "" && waited {
				*s = succession{ended, time.Now()}
			}
		}
	}
}

// bind gives a command, bound to the turn that ran when it came if it stops a turn
// that it does not name.
func (s *succession) bind(d *Deliver) messages.Command {
	if d.Received.IsZero() || d.Received.After(s.at) {
		return d.Command
	}
	switch c := d.Command.(type) {
	case messages.Interrupt:
		c.Turn = cmp.Or(c.Turn, s.ended)
		return c
	case messages.Abort:
		c.Turn = cmp.Or(c.Turn, s.ended)
		return c
	}
	return d.Command
}
