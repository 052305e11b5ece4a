package verify

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
)

// calling is the story of a call.
const calling = `input u1 "pay"
answers asks pay c1 {}
returns c1 "paid"
answers "Done"
`

// stream returns the result of the frames with the definition of the first.
func (s told) stream(frames []*messages.Frame) Result {
	return Stream(s.agent, Current{Turn: s.with[0]}, Frames(frames))
}

func TestBadStreams(t *testing.T) {
	s := tell(t, calling)
	if r := s.stream(s.frames); r.Result != Equal || r.Events != s.frames[len(s.frames)-1].Last() || r.Agent != s.agent {
		t.Fatalf("got %+v", r)
	}
	broken := func(yield func(*messages.Frame, error) bool) {
		_ = yield(s.frames[0], nil) && yield(nil, errors.New("the disk is gone"))
	}
	if r := Stream(s.agent, Current{Turn: s.with[0]}, broken); r.Result != Unreadable || r.Why != "the disk is gone" || r.Events != s.frames[0].Last() {
		t.Errorf("cut off: got %+v", r)
	}
	if r := s.stream(nil); r.Result != Unreadable || r.Why == "" {
		t.Errorf("empty: got %+v", r)
	}
	for why, frames := range map[string][]*messages.Frame{
		"the frame that begins with event 1 has no events":            {{First: 1, Cause: messages.Cause{Type: messages.CauseEffect}}},
		"event 6 is expected, and the next frame begins with event 9": slices.Concat(s.frames[:1], s.frames[2:]),
		"the events before event 6 are not there":                     s.frames[1:],
	} {
		if r := s.stream(frames); r.Result != Unreadable || r.Why != why {
			t.Errorf("got %+v, want %s", r, why)
		}
	}
	more := *s.frames[0]
	more.Events = append(slices.Clip(more.Events), messages.CommandNoop{})
	if r := s.stream([]*messages.Frame{&more}); r.Result != Differs || r.Difference.N != 6 || r.Difference.Now != nil {
		t.Errorf("an event more: got %+v", r)
	}
	for i := range s.frames { // any order of frames has a result
		if r := s.stream(slices.Concat(s.frames[i:], s.frames[:i])); i > 0 && r.Result == Equal {
			t.Errorf("rotated by %d: got %+v", i, r)
		}
		if r := s.stream(slices.Delete(slices.Clone(s.frames), i, i+1)); i < len(s.frames)-1 && r.Result == Equal {
			t.Errorf("without frame %d: got %+v", i, r)
		}
	}
}

// What a model wrote reaches no terminal as a control character.
func TestTextIsPrintable(t *testing.T) {
	s := tell(t, calling)
	for i, f := range s.frames {
		for j, ev := range f.Events {
			if done, ok := ev.(messages.TurnCompleted); ok {
				done.Output = "\x1b[2Jgone\u202e"
				s = s.instead(i, j, done)
			}
		}
	}
	r := s.stream(s.frames)
	if text := r.Text(); r.Result != Differs || !strings.Contains(text, "gone") || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("got %q", r.Text())
	}
}

// An owner that is leaving starts no call that must not be cut off, which its log does not record.
func TestLeavingOwner(t *testing.T) {
	stage := turntest.New(t)
	stage.Do(`input u1 "mail it"`)
	stage.Env.Leaving = true
	stage.Do(`answers asks mail c1 {}`)
	s := told{agent: stage.Env.Agent, frames: stage.Log, with: []turn.Definition{stage.Env.Definition}}
	r := s.stream(s.frames)
	if r.Result != Equal || len(r.Unchecked) != 1 || r.Unchecked[0].What != left {
		t.Fatalf("got %+v", r)
	}
	stage.Env.Leaving = false
	stage.Do("takeover 2")
	s.frames = asOwners(stage.Log, len(s.frames))
	if r := s.stream(s.frames); r.Result != Equal {
		t.Errorf("the next owner starts the call: got %s", r.Text())
	}
}

// What no event records, such as the hooks that are being asked, is lost to the next owner.
func TestTakeoverWhileHooksAreAsked(t *testing.T) {
	s := tell(t, `definition hooks=model at_limit=pause max_duration=10s
input u1 "go"
pass 20s
crash
takeover 2
`)
	if last := s.frames[len(s.frames)-1]; last.Events[len(last.Events)-1].EventType() != (messages.TurnPaused{}).EventType() {
		t.Fatalf("the story does not end with a pause: %v", last.Events)
	}
	if r := s.stream(s.frames); r.Result != Equal {
		t.Errorf("got %s", r.Text())
	}
}

// A deleted agent is compared from its tombstone on.
func TestTombstoneFirst(t *testing.T) {
	s := tell(t, calling+"delete d1\n")
	at := slices.IndexFunc(s.frames, func(f *messages.Frame) bool { return messages.Is(f.Events[0].EventType(), messages.EndsAgent) })
	if at < 1 {
		t.Fatalf("the story has no tombstone: %v", s.frames)
	}
	if r := s.stream(s.frames[at:]); r.Result != Equal || len(r.Unchecked) != 1 || r.Unchecked[0].What != pasts {
		t.Errorf("got %+v", r)
	}
}

// The first event of an agent that is no fork names that agent.
func TestCreatedAsAnother(t *testing.T) {
	s := tell(t, calling)
	s = s.instead(0, 0, messages.AgentCreated{Agent: "default/test/bob"})
	if r := s.stream(s.frames); r.Result != Differs || r.Difference.N != 1 {
		t.Errorf("got %+v", r)
	}
}

// A summary that an older version has asked for names no definition.
func TestSummaryWithoutDefinition(t *testing.T) {
	s := tell(t, calling+"compact k1 keep=1 how=summary\n")
	last := len(s.frames) - 1
	asked, ok := s.frames[last].Events[0].(messages.CompactionRequested)
	if !ok || asked.Definition == "" {
		t.Fatalf("the story ends with %v", s.frames[last].Events)
	}
	asked.Definition = ""
	if _, r := s.instead(last, 0, asked).compared(); r.Result != Equal {
		t.Errorf("got %s", r.Text())
	}
}
