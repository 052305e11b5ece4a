package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

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
		for i, f := range s.frames {
			v.current.Turn = s.with[i]
			v.known = definitions{current: v.current}
			if !yield(f, nil) {
				return
			}
		}
	}
	v = &stream{agent: s.agent, frames: frames}
	return v, v.compare()
}

// Each story of the turn machine is equal under the definition that it was decided with.
func TestStories(t *testing.T) {
	for _, file := range turntest.Files(t, "../turn/testdata") {
		t.Run(file.Name, func(t *testing.T) {
			s := tell(t, file.Text)
			v, r := s.compared()
			if r.Result != Equal && len(s.frames) > 0 {
				t.Errorf("%+v", r)
			}
			if r.Difference != nil {
				t.Errorf("%s\nrecorded %s %s\nnow %s %s\nfields %s\n%s", r.Difference.Cause, r.Difference.Type, r.Difference.Recorded, r.Difference.NowType, r.Difference.Now, r.Difference.Fields, r.Difference.Refused)
			}
			t.Log(v.unchecked)
		})
	}
}
