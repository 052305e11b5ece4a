package verify

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// Current is the definition that streams are compared with.
type Current struct {
	// Turn is the part that decisions depend on.
	Turn turn.Definition
	// Stored is the whole, as it is stored under its digest. Nil: what another definition has in
	// its place is not known.
	Stored json.RawMessage
	// Recorded returns a definition as it was stored, by its digest. Nil: none is there.
	Recorded func(digest string) (json.RawMessage, error)
	// Review returns what a tool decides about a call with these arguments before it runs. It reports
	// false if the tool is not asked, or does not answer. Nil: that is taken from the record.
	Review func(tool, arguments string) (r turn.Review, ok bool)
	// Of returns the definition of agents of a kind, as of today, with the changes of a fork. Nil: every
	// event is decided with this one, though a fork has changes or its parent is of another kind.
	Of func(kind string, set messages.ForkChanges) (Current, error)
	// Redacted reports that texts of the stream were replaced after it was recorded: hashes of
	// what a model was sent are taken from the record.
	Redacted bool
}

// Outcome is how a stream compares.
type Outcome string

// The outcomes.
const (
	Equal      Outcome = "equal"      // every event comes out the same
	Differs    Outcome = "differs"    // an event comes out differently
	Unreadable Outcome = "unreadable" // the stream cannot be read, or its kind is not defined here
)

// Result is what came of comparing one stream.
type Result struct {
	Agent messages.AgentID `json:"agent"`
	// Result is how the events compare.
	Result Outcome `json:"result"`
	// Events is the number of the newest event that was compared and is equal.
	Events messages.EventNumber `json:"events"`
	// Difference is the first one. Nil: there is none.
	Difference *Difference `json:"difference,omitempty"`
	// Why is why the stream is unreadable. Empty: it is not.
	Why string `json:"why,omitempty"`
	// Changes are where the definitions that the stream was recorded with differ from that of
	// today, also if the stream is equal.
	Changes []Change `json:"changes,omitempty"`
	// Unchecked is what was taken from the record as it is.
	Unchecked []Unchecked `json:"unchecked,omitempty"`
}

// Difference is an event that comes out differently.
type Difference struct {
	N messages.EventNumber `json:"n"`
	// Type is that of the recorded event; empty if there is none.
	Type string `json:"type,omitempty"`
	// Cause is the command, answer or result that led to the event.
	Cause string `json:"cause"`
	// Recorded is the recorded event as JSON. Nil: there is none.
	Recorded json.RawMessage `json:"recorded,omitempty"`
	// Now is the event that is decided today, as JSON. Nil: there is none.
	Now json.RawMessage `json:"now,omitempty"`
	// NowType is the type of the event that is decided today; empty if there is none.
	NowType string `json:"now_type,omitempty"`
	// Fields are those that differ, if both events have the same type.
	Fields []Field `json:"fields,omitempty"`
	// Refused is why the command is refused today. Empty: it is not.
	Refused string `json:"refused,omitempty"`
	// Why is the reason for the difference, as far as it is known.
	Why string `json:"why,omitempty"`
}

// Field is a field of an event that differs, by its path of names and indexes. A value that is
// not there is left out.
type Field struct {
	// Path is the field, with dots between the names of nested ones.
	Path string `json:"path"`
	// Recorded is the value in the log.
	Recorded json.RawMessage `json:"recorded,omitempty"`
	// Now is the value that is decided today.
	Now json.RawMessage `json:"now,omitempty"`
}

// Unchecked is something that was taken from the record, and how often.
type Unchecked struct {
	// What is what was taken from the record.
	What string `json:"what"`
	// Count is how often.
	Count int `json:"count"`
}

// Stream compares the frames of an agent, oldest first and from its first event on; those of a fork
// begin with its parent's, those of an imported agent with the imported ones. It may range over them several times. It reads no more of them than it
// needs.
func Stream(agent messages.AgentID, current Current, frames iter.Seq2[*messages.Frame, error]) Result {
	s := &stream{agent: agent, current: current, frames: frames, known: &definitions{current: current}}
	s.lineage.kinds = []*kind{{name: agent.Kind, definitions: s.known}}
	r := s.compare()
	for _, k := range s.lineage.kinds {
		r.Changes = append(r.Changes, k.changes()...)
	}
	r.Agent, r.Unchecked = agent, s.unchecked
	return r
}

// stream is a comparison under way.
type stream struct {
	// agent and current are those of the frame that is decided: the events of a prefix are another
	// agent's.
	agent   messages.AgentID
	current Current
	lineage lineage
	// foreign reports that the frame has no definition here, and is taken from the record.
	foreign   bool
	frames    iter.Seq2[*messages.Frame, error]
	known     *definitions
	unchecked []Unchecked

	// state is that of the events before next.
	state turn.State
	next  messages.EventNumber
	frame *messages.Frame
	// leaving reports that the frame was made by an owner that was about to give the agent away.
	leaving bool
}

func (s *stream) compare() (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = Result{Result: Unreadable, Events: before(s.next), Why: fmt.Sprintf("event %d cannot be decided again: %v", s.next, p)}
		}
	}()
	for f, err := range s.frames {
		if err == nil {
			err = s.follows(f)
		}
		if err == nil {
			err = s.belong(f)
		}
		if err != nil {
			return Result{Result: Unreadable, Events: before(s.next), Why: err.Error()}
		}
		if d := s.again(f); d != nil {
			return Result{Result: Differs, Events: before(d.N), Difference: d}
		}
	}
	if s.next == 0 {
		return Result{Result: Unreadable, Why: "the stream has no events"}
	}
	return Result{Result: Equal, Events: before(s.next)}
}

// follows refuses a frame that cannot be the next one.
func (s *stream) follows(f *messages.Frame) error {
	switch {
	case f.Encrypted():
		return messages.Refuse(messages.Damaged, "the frame that begins with event %d is encrypted, and its key is not here", f.First)
	case len(f.Events) == 0:
		return messages.Refuse(messages.Damaged, "the frame that begins with event %d has no events", f.First)
	case s.next == 0 && f.First > 1 && !messages.Is(f.Events[0].EventType(), messages.EndsAgent):
		return messages.Refuse(messages.Damaged, "the events before event %d are not there", f.First)
	case s.next != 0 && f.First != s.next:
		return messages.Refuse(messages.Damaged, "event %d is expected, and the next frame begins with event %d", s.next, f.First)
	}
	return nil
}

// before returns the number before n; 0 before the first.
func before(n messages.EventNumber) messages.EventNumber { return max(n, 1) - 1 }

// again decides a frame again and returns its first difference; nil if it is equal. An owner that
// was about to give the agent away has left calls to the next one, which the log does not record:
// where a call would begin that did not, that is tried.
func (s *stream) again(f *messages.Frame) *Difference {
	s.frame, s.next, s.leaving = f, f.First, false
	d := s.decide()
	if d == nil || !d.begins() {
		return d
	}
	s.reload()
	s.leaving = true
	if s.decide() != nil {
		return d
	}
	s.note(left, 1)
	return nil
}

// reload makes the state that of an owner who reads the frames before this one from the log.
func (s *stream) reload() {
	s.state, s.next = turn.State{}, s.frame.First
	for earlier, err := range s.frames {
		if err != nil || earlier.First >= s.frame.First {
			return
		}
		s.state.Apply(earlier)
	}
}

// note counts what is taken from the record.
func (s *stream) note(what string, n int) {
	for i := range s.unchecked {
		if s.unchecked[i].What == what {
			s.unchecked[i].Count += n
			return
		}
	}
	s.unchecked = append(s.unchecked, Unchecked{what, n})
}

// Frames yields frames that are in memory.
func Frames(list []*messages.Frame) iter.Seq2[*messages.Frame, error] {
	return func(yield func(*messages.Frame, error) bool) {
		for _, f := range list {
			if !yield(f, nil) {
				return
			}
		}
	}
}
