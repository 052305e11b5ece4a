package verify

import (
	"cmp"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// decide decides the frame again and folds it.
func (s *stream) decide() *Difference {
	f := s.frame
	switch {
	case s.state.Last == 0 && f.First > 1: // a tombstone: what was before it is gone
		s.take(f.Events, pasts)
		return nil
	case s.foreign:
		s.take(f.Events, foreigns)
		return nil
	case f.Cause.Type == messages.CauseTakeover:
		return s.record(s.takeover())
	case f.Cause.Type != messages.CauseEffect:
		return s.command()
	}
	return s.record(s.outcomes())
}

// take folds the rest of the frame as it is recorded.
func (s *stream) take(rest []messages.Event, what string) {
	s.note(what, 1)
	part := *s.frame
	part.First, part.Events = s.next, rest
	s.state.Apply(&part)
	s.next = part.Last() + 1
}

// record notes a frame that is equal as the owner has noted it.
func (s *stream) record(d *Difference) *Difference {
	if d == nil {
		s.state.Record(s.frame)
	}
	return d
}

// takeover decides what an owner does first: everything that no event records is lost to it.
func (s *stream) takeover() *Difference {
	s.state.Restart()
	rest := s.frame.Events
	if ev, ok := rest[0].(messages.AgentActivated); ok {
		s.state.Activate(ev)
		rest, s.next = rest[1:], s.next+1
	}
	_, d := s.whole(turn.Recover{}, rest)
	return d
}

// command decides the frame's command again.
func (s *stream) command() *Difference {
	c, what := s.commandOf(s.frame)
	if beginsBehind(s.frame) { // a fork that begins has loaded the prefix
		s.reload()
	}
	if c == nil {
		s.take(s.frame.Events, what)
		return nil
	}
	_, d := s.whole(c, s.frame.Events)
	return s.record(d)
}

// outcomes decides the frame's outcomes again, one after the other.
func (s *stream) outcomes() *Difference {
	for rest := s.frame.Events; len(rest) > 0; {
		o, d := s.outcomeOf(rest)
		if d != nil {
			return d
		}
		n, d := s.part(o, rest, s.span(rest))
		if d != nil {
			return d
		}
		rest = rest[n:]
	}
	return nil
}

// whole decides what, from which all of rest must come.
func (s *stream) whole(what any, rest []messages.Event) (n int, d *Difference) {
	n, d = s.part(what, rest, rest)
	if d == nil && n < len(rest) {
		d = s.differs(what, rest[n], nil)
	}
	return n, d
}

// part decides what, from which the first events of rest must come, and returns how many those
// are. The events of span hold what else the decision depended on.
func (s *stream) part(what any, rest, span []messages.Event) (n int, d *Difference) {
	events, err := s.state.Decide(s.env(span), what)
	if err != nil {
		d = s.differs(what, first(rest), nil)
		d.Refused = messages.AsError(err).Message
		return 0, d
	}
	for i, now := range events {
		if i == len(rest) && s.cut(s.frame) {
			return i, nil
		}
		if i == len(rest) {
			return i, s.differs(what, nil, now)
		}
		if d := s.same(what, rest[i], now); d != nil {
			return i, d
		}
		s.next++
	}
	if len(events) == 0 && len(rest) > 0 && !s.asksOthers(what) {
		return 0, s.differs(what, rest[0], nil)
	}
	return len(events), nil
}

// asksOthers reports whether what has given no event because the hooks at another point are asked
// next.
func (s *stream) asksOthers(what any) bool {
	asked, ok := what.(turn.HooksAsked)
	next := s.asking()
	return ok && next != "" && next != asked.Point
}

func first(list []messages.Event) messages.Event {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// env returns what the decision depends on. The definition has the name that it has on record:
// what it holds is compared by what it does.
func (s *stream) env(span []messages.Event) turn.Env {
	def := s.current.Turn
	if !def.Unknown() {
		def.Digest = s.state.Life.Definition
	}
	e := turn.Env{Agent: s.agent, Now: s.now(span), Trace: s.frame.Trace, Leaving: s.leaving}
	for _, ev := range span {
		switch ev := ev.(type) {
		case messages.AgentConfigured:
			def.Digest = ev.Definition
		case messages.CompactionRequested: // also where nothing else has named it yet
			def.Digest = cmp.Or(ev.Definition, def.Digest)
		case messages.ChildDecided:
			e.Person = ev.Person
		case messages.AgentDeleted:
			e.Upto = &ev.Upto
		case messages.AgentForked: // the digest was compared when the prefix was read
			e.Forked = turn.ForkedFrame{Digest: ev.Digest, Last: ev.At, Time: s.lineage.at}
		case messages.AgentImported:
			e.Forked = turn.ForkedFrame{Time: s.lineage.at}
		case messages.ForkDetached:
			e.Copied = &messages.Prefix{Last: ev.Last, Digest: ev.Digest}
			if ev.Frames != nil { // else it is of an export
				e.Copied.Frames = *ev.Frames
			}
		}
	}
	e.Definition, e.Next = def, &def
	return e
}
