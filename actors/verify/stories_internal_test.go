package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
)

// told is a stream of a story, with the definition that each of its frames was decided with.
type told struct {
	agent  messages.AgentID
	frames []*messages.Frame
	with   []turn.Definition
}

// tell plays a story.
func tell(t testing.TB, text string) (s told) {
	stage := turntest.New(t)
	s.agent = stage.Env.Agent
	answer := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if answer = line == "----" || answer && line != ""; answer || line == "" || line[0] == '#' {
			continue
		}
		before := len(stage.Log)
		stage.Do(line)
		if word, _, _ := strings.Cut(line, " "); word == "takeover" || word == "recover" {
			stage.Log = asOwners(stage.Log, before)
		}
		for len(s.with) < len(stage.Log) {
			def := stage.Env.Definition
			def.Tools = maps.Clone(def.Tools)
			s.with = append(s.with, def)
		}
	}
	s.frames = stage.Log
	return s
}

// asOwners returns the log with what came of a takeover from a frame on as owners append it: as one
// frame.
func asOwners(log []*messages.Frame, from int) []*messages.Frame {
	if from == len(log) {
		return log
	}
	one := *log[from]
	one.Cause = messages.Cause{Type: messages.CauseTakeover}
	for _, f := range log[from+1:] {
		one.Events = slices.Concat(one.Events, f.Events)
	}
	return append(log[:from:from], &one)
}

// compared compares a stream whose definition may change between two frames.
func (s told) compared() (*stream, Result) {
	var v *stream
	frames := func(yield func(*messages.Frame, error) bool) {
		current, known := v.current, v.known
		defer func() { v.current, v.known = current, known }() // another range is under way
		for i, f := range s.frames {
			v.current.Turn = s.with[i]
			v.known = &definitions{current: v.current}
			if !yield(f, nil) {
				return
			}
		}
	}
	v = &stream{agent: s.agent, frames: frames}
	v.lineage.kinds = []*kind{{definitions: new(definitions)}}
	return v, v.compare()
}

// later returns the stream with each frame appended some time after its decision, but those of a
// prefix, whose times a fork is decided with.
func (s told) later(by time.Duration) told {
	s.frames = slices.Clone(s.frames)
	own := slices.IndexFunc(s.frames, func(f *messages.Frame) bool { _, forked := messages.PrefixOf(f); return forked })
	for i, f := range s.frames[max(own, 0):] {
		appended := *f
		appended.Time = f.Time.Add(by)
		s.frames[max(own, 0)+i] = &appended
	}
	return s
}

// Each story of the turn machine is equal under the definition that it was decided with, also if
// its frames were appended after the moment of the decision.
func TestStories(t *testing.T) {
	for _, file := range turntest.Files(t, "../turn/testdata") {
		t.Run(file.Name, func(t *testing.T) {
			s := tell(t, file.Text)
			for _, by := range []time.Duration{0, 3 * time.Millisecond} {
				if _, r := s.later(by).compared(); r.Result != Equal && len(s.frames) > 0 {
					t.Errorf("appended after %v: %s", by, r.Text())
				}
			}
		})
	}
}

// An input that waits has its trace, which the frame that starts its turn does not have.
func TestTraceOfWaitingInput(t *testing.T) {
	stage := turntest.New(t)
	for _, step := range []struct {
		trace messages.TraceContext
		line  string
	}{
		{"", `input u1 "one"`},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", `input u2 "two"`},
		{"00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01", `input u3 "three"`},
		{"", `answers "1"`}, {"", `answers "2"`}, {"", `answers "3"`},
	} {
		stage.Env.Trace = step.trace
		stage.Do(step.line)
	}
	if r := Stream(stage.Env.Agent, Current{Turn: stage.Env.Definition}, Frames(stage.Log)); r.Result != Equal {
		t.Error(r.Text())
	}
}
