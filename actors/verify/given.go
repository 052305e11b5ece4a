package verify

import (
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// Given is a command that an agent was given and that is no answer to something that it did: an input
// that began a turn, or a change of its history, its state or its remembered decisions.
type Given struct {
	// Command has the recorded id. An input is due at once, and has no reply subject, no deadline and
	// no parent.
	Command messages.Command
	// Steers are the inputs that came into the turn which an input began, in their order.
	Steers []Steer
}

// Steer is an input that came into a turn when it ran.
type Steer struct {
	Input messages.Input
	// Step is the number of the turn's newest model call then.
	Step int
}

// Commands returns what an agent was given, in the order in which it accepted it. Inputs that were in
// no turn are left out, and so are commands about a turn, such as interrupts and approvals. It refuses a
// stream that was imported with texts replaced, whose inputs are not what the agent was given.
func Commands(frames []*messages.Frame) ([]Given, error) {
	s := new(stream)
	var list []accepted
	var turns projections.Turns
	for _, f := range frames {
		if ev, ok := first(f.Events).(messages.AgentImported); ok && len(ev.Redacted) > 0 {
			return nil, messages.Refuse(messages.BadInput, "texts were replaced before it was imported (%s), so its inputs are not what was asked", strings.Join(ev.Redacted, ", "))
		}
		list = append(list, s.accepted(f)...)
		s.state.Apply(f)
		projections.Fold(f, 0, &turns)
	}
	return inTurns(list, turns.List()), nil
}

// accepted is a command as it was accepted; step is that of a running turn which an input steered.
type accepted struct {
	messages.Command
	steered bool
	step    int
}

// accepted returns the commands that a frame holds.
func (s *stream) accepted(f *messages.Frame) (list []accepted) {
	switch f.Cause.Type {
	case messages.Clear{}.CommandType(), messages.SetState{}.CommandType(), messages.Compact{}.CommandType(), messages.Forget{}.CommandType():
		if c, _ := s.commandOf(f); c != nil {
			list = append(list, accepted{Command: c})
		}
	}
	for _, ev := range f.Events {
		in, ok := ev.(messages.InputAccepted)
		if !ok {
			continue
		}
		input := messages.Input{ID: in.Input, Content: in.Content, Metadata: in.Metadata, Options: in.Options}
		if t := s.state.Turn; t != nil && in.Disposition == messages.Steered {
			input.Policy = messages.PolicySteer
			list = append(list, accepted{input, true, t.Steps})
		} else {
			list = append(list, accepted{Command: input})
		}
	}
	return list
}

// inTurns returns the list without inputs that were in no turn, those that steered a turn with the one
// that began it. One that was put into the queue again began a turn of its own.
func inTurns(list []accepted, turns []projections.Turn) (kept []Given) {
	of := make(map[string]messages.TurnID)
	for _, t := range turns {
		for _, id := range t.Inputs {
			of[id] = t.ID
		}
	}
	began := make(map[messages.TurnID]int) // by which of kept
	for _, c := range list {
		in, ok := c.Command.(messages.Input)
		turn := of[in.ID]
		if ok && turn == "" {
			continue
		}
		if i, runs := began[turn]; c.steered && runs {
			kept[i].Steers = append(kept[i].Steers, Steer{in, c.step})
			continue
		}
		if ok {
			began[turn] = len(kept)
		}
		kept = append(kept, Given{Command: c.Command})
	}
	return kept
}
