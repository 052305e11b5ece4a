package verify

import (
	"iter"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Given is a command that an agent was given and that is no answer to something that it did: an input,
// or a change of its history, its state or its remembered decisions.
type Given struct {
	// Command has the recorded id. An input is due at once, and has no reply subject, no deadline and
	// no parent.
	Command messages.Command
	// Turn is the one that an input was a part of. Steered reports that it came into that turn when it
	// ran, Step the number of the turn's newest model call then.
	Turn    messages.TurnID
	Steered bool
	Step    int
}

// Commands returns what an agent was given, in the order in which it accepted it. Inputs that were in
// no turn are left out, and so are commands about a turn, such as interrupts and approvals. It refuses a
// stream that was imported with texts replaced, whose inputs are not what the agent was given.
func Commands(agent messages.AgentID, current Current, frames iter.Seq2[*messages.Frame, error]) ([]Given, error) {
	s := &stream{agent: agent, current: current, frames: frames}
	var list []Given
	var turns projections.Turns
	for f, err := range frames {
		if err != nil {
			return nil, err
		}
		if ev, ok := first(f.Events).(messages.AgentImported); ok && len(ev.Redacted) > 0 {
			return nil, messages.Refuse(messages.BadInput, "texts were replaced before it was imported (%s), so its inputs are not what was asked", strings.Join(ev.Redacted, ", "))
		}
		list = append(list, s.given(f)...)
		s.state.Apply(f)
		projections.Fold(f, 0, &turns)
	}
	return inTurns(list, turns.List()), nil
}

// given returns the commands that a frame holds.
func (s *stream) given(f *messages.Frame) (list []Given) {
	switch f.Cause.Type {
	case messages.Clear{}.CommandType(), messages.SetState{}.CommandType(), messages.Compact{}.CommandType(), messages.Forget{}.CommandType():
		if c, _ := s.commandOf(f); c != nil {
			list = append(list, Given{Command: c})
		}
	}
	for _, ev := range f.Events {
		in, ok := ev.(messages.InputAccepted)
		if !ok {
			continue
		}
		g := Given{Command: messages.Input{ID: in.Input, Content: in.Content, Metadata: in.Metadata, Options: in.Options}}
		if t := s.state.Turn; t != nil && in.Disposition == messages.Steered {
			g.Steered, g.Step = true, t.Steps
		}
		list = append(list, g)
	}
	return list
}

// inTurns returns the list without inputs that were in no turn.
func inTurns(list []Given, turns []projections.Turn) (kept []Given) {
	of := make(map[string]messages.TurnID)
	first := make(map[string]bool)
	for _, t := range turns {
		for i, id := range t.Inputs {
			of[id], first[id] = t.ID, i == 0
		}
	}
	for _, g := range list {
		in, ok := g.Command.(messages.Input)
		if g.Turn = of[in.ID]; ok && g.Turn == "" {
			continue
		}
		g.Steered = g.Steered && !first[in.ID] // else it was put into the queue again, for a turn of its own
		kept = append(kept, g)
	}
	return kept
}
