package actors

import (
	"cmp"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// succession is the newest change from a turn to that of an input which waited for its end.
// An interrupt or abort that came before is about the turn that ran then, and not about the
// next one, which begins with the same append. It is not rebuilt when the agent is loaded
// again. The zero value is none.
type succession struct {
	ended messages.TurnID
	at    time.Time // when the log had it; zero: not yet
}

// bind returns a command, bound to the turn that ran when it came if it stops a turn
// that it does not name.
func (s *succession) bind(d *Deliver) messages.Command {
	if s.ended == "" || d.Received.IsZero() || d.Received.After(s.at) {
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
