package verify

import (
	"testing"

	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
)

// Every command is decided again: it has an entry in rebuilt, and the stories have a frame of it whose
// command is found by its events. Without that its frames would be taken from the record, as equal.
func TestEveryCommandIsDecidedAgain(t *testing.T) { // A82
	found := make(map[string]bool)
	for _, file := range turntest.Files(t, "../turn/testdata") {
		story := tell(t, file.Text)
		s := new(stream)
		for i, f := range story.frames {
			s.current.Turn = story.with[i]
			if c, _ := s.commandOf(f); c != nil {
				found[c.CommandType()] = true
			}
			s.state.Apply(f)
		}
	}
	for _, c := range messages.Commands() {
		name := c.CommandType()
		switch {
		case rebuilt[name] == nil:
			t.Errorf("%s: rebuilt has no entry, so that its frames are not compared", name)
		case !found[name]:
			t.Errorf("%s: no story of ../turn/testdata has a frame whose command is rebuilt", name)
		}
	}
	if len(rebuilt) != len(messages.Commands()) {
		t.Errorf("entries of rebuilt: got %d, want %d, one for each command", len(rebuilt), len(messages.Commands()))
	}
}
