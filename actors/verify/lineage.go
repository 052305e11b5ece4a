package verify

import (
	"cmp"
	"reflect"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// lineage is whose the events of a fork's stream are, and the definitions that they are decided
// with. The zero value is that of an agent that is no fork.
type lineage struct {
	// prefixes are in the order of the stream: that of a fork of a fork has two. The agent of each is
	// the one that has appended it, which the parent may have it from.
	prefixes []messages.Prefix
	fork     messages.AgentID
	// at is the time of the frame before this one.
	at time.Time
	// kinds are the definitions that were needed so far.
	kinds []*kind
}

// kind is the definition of a kind with the changes of a fork.
type kind struct {
	name string
	set  messages.ForkChanges
	*definitions
}

// belong sets the agent and the definition to those of the frame.
func (s *stream) belong(f *messages.Frame) error {
	if s.next == 0 {
		s.descend(f)
	}
	if s.frame != nil {
		s.lineage.at = s.frame.Time
	}
	if len(s.lineage.prefixes) > 0 {
		s.agent = s.lineage.owner(f)
	}
	set := s.state.Forks.Set()
	if ev, forked := first(f.Events).(messages.AgentForked); forked {
		set = ev.Set
	}
	return s.define(set)
}

// descend finds the prefixes of a stream. One that begins with the agent itself has none.
func (s *stream) descend(first *messages.Frame) {
	if ev, ok := first.Events[0].(messages.AgentCreated); ok && ev.Agent == s.agent.Full() {
		return
	}
	s.lineage.fork = s.agent
	owner := ""
	for f, err := range s.frames {
		if err != nil {
			return // the comparison comes to it, too
		}
		p, forked := messages.PrefixOf(f)
		if forked {
			p.Agent, _ = messages.ParseAgentID(owner) // zero: what it has appended is found to differ
			s.lineage.prefixes = append(s.lineage.prefixes, p)
		}
		owner = cmp.Or(named(f, forked), owner)
	}
}

// named returns the agent that a frame creates or, if it begins a fork, that one; else an empty
// string.
func named(f *messages.Frame, fork bool) string {
	for _, ev := range f.Events {
		switch ev := ev.(type) {
		case messages.AgentCreated:
			return ev.Agent
		case messages.AgentForked:
			if fork {
				return ev.Agent
			}
		}
	}
	return ""
}

// owner returns the agent that has appended a frame.
func (l *lineage) owner(f *messages.Frame) messages.AgentID {
	for _, p := range l.prefixes {
		if f.First <= p.Last {
			return p.Agent
		}
	}
	return l.fork
}

// cut reports whether a prefix ends with the frame, which then may have had more events.
func (l *lineage) cut(f *messages.Frame) bool {
	for _, p := range l.prefixes {
		if f.Last() == p.Last {
			return true
		}
	}
	return false
}

// define has the frame decided with the definition of its agent with the changes of a fork.
func (s *stream) define(set messages.ForkChanges) error {
	given := s.lineage.kinds[0].current
	if given.Of == nil {
		return nil
	}
	for _, k := range s.lineage.kinds {
		if k.name == s.agent.Kind && reflect.DeepEqual(k.set, set) {
			s.current, s.known = k.current, k.definitions
			return nil
		}
	}
	c, err := given.Of(s.agent.Kind, set)
	if err != nil {
		return err
	}
	c.Of, c.Recorded, c.Redacted = given.Of, given.Recorded, given.Redacted
	s.current, s.known = c, &definitions{current: c}
	s.lineage.kinds = append(s.lineage.kinds, &kind{s.agent.Kind, set, s.known})
	return nil
}
