package verify

import (
	"cmp"
	"reflect"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// lineage is whose the events of a stream are, and the definitions that they are decided with. The
// zero value is that of an agent whose events are all its own.
type lineage struct {
	// prefixes are in the order of the stream: that of a fork of a fork has two. They are found when
	// they are needed first: most agents have none.
	prefixes []prefix
	found    bool
	// own is the agent that has the events behind the prefixes.
	own messages.AgentID
	// at is the time of the frame before this one.
	at time.Time
	// kinds are the definitions that were needed so far.
	kinds []*kind
}

// prefix is the events in front of a fork, or of an imported agent.
type prefix struct {
	// agent is the one that has appended them, which the parent may have them from. Zero: none is named,
	// and what it has appended is found to differ.
	agent messages.AgentID
	last  messages.EventNumber
	// imported reports that they were imported, redacted that their texts were replaced before.
	imported, redacted bool
}

// kind is the definition of a kind with the changes of a fork.
type kind struct {
	name string
	set  messages.ForkChanges
	*definitions
}

// belong sets the agent and the definition to those of the frame.
func (s *stream) belong(f *messages.Frame) error {
	begins := beginsBehind(f)
	if begins || s.next == 0 && !creates(f, s.agent) {
		s.descend()
	}
	if s.frame != nil {
		s.lineage.at = s.frame.Time
	}
	if len(s.lineage.prefixes) > 0 {
		s.agent = s.lineage.owner(f)
	}
	forks := s.state.Forks
	if begins {
		forks.Apply(f.First, f.Events[0])
	}
	err := s.define(forks.Set())
	if s.foreign = s.lineage.foreign(f, err); s.foreign {
		return nil
	}
	return err
}

// foreign reports whether a frame was imported and its agent's kind is not defined here: an agent may
// be imported as one of another kind.
func (l *lineage) foreign(f *messages.Frame, err error) bool {
	p := l.of(f)
	return err != nil && p != nil && p.imported && messages.AsError(err).Code == messages.UnknownKind
}

// descend finds the prefixes of the stream, once.
func (s *stream) descend() {
	if s.lineage.found {
		return
	}
	s.lineage.found, s.lineage.own = true, s.agent
	owner := ""
	for f, err := range s.frames {
		if err != nil {
			return // the comparison comes to it, too
		}
		if beginsBehind(f) {
			p := prefix{last: f.First - 1}
			p.agent, _ = messages.ParseAgentID(owner)
			s.lineage.prefixes = append(s.lineage.prefixes, p)
			s.lineage.imported(f.Events[0])
		}
		owner = cmp.Or(named(f), owner)
	}
}

// beginsBehind reports whether the frame is the first behind the events of another agent. In an export
// that of an imported agent names no blob with them.
func beginsBehind(f *messages.Frame) bool {
	return f.First > 1 && eventlog.Forks(f)
}

// creates reports whether the agent begins with the frame.
func creates(f *messages.Frame, agent messages.AgentID) bool {
	ev, ok := first(f.Events).(messages.AgentCreated)
	return ok && ev.Agent == agent.Full()
}

// named returns the agent that begins with a frame; empty if none does.
func named(f *messages.Frame) string {
	switch ev := first(f.Events).(type) {
	case messages.AgentCreated:
		return ev.Agent
	case messages.AgentForked:
		return ev.Agent
	case messages.AgentImported:
		return ev.Agent
	}
	return ""
}

// imported marks all prefixes so far as imported if the event is an import.
func (l *lineage) imported(ev messages.Event) {
	if ev, ok := ev.(messages.AgentImported); ok {
		for i := range l.prefixes {
			p := &l.prefixes[i]
			p.imported, p.redacted = true, p.redacted || len(ev.Redacted) > 0
		}
	}
}

// of returns the prefix that a frame is in; nil if it is in none.
func (l *lineage) of(f *messages.Frame) *prefix {
	for i := range l.prefixes {
		if p := &l.prefixes[i]; f.First <= p.last {
			return p
		}
	}
	return nil
}

// owner returns the agent that has appended a frame.
func (l *lineage) owner(f *messages.Frame) messages.AgentID {
	if p := l.of(f); p != nil {
		return p.agent
	}
	return l.own
}

// cut reports whether a prefix ends with the frame, which then may have had more events.
func (s *stream) cut(f *messages.Frame) bool {
	s.descend()
	p := s.lineage.of(f)
	return p != nil && p.last == f.Last()
}

// redacted reports whether texts of the frame were replaced after it was recorded.
func (s *stream) redacted() bool {
	if s.current.Redacted {
		return true
	}
	s.descend()
	p := s.lineage.of(s.frame)
	return p != nil && p.redacted
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
