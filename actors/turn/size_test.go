package turn_test

import (
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/messages"
)

// An agent counts for what it holds in memory: images that are no blobs do, and blobs do not.
func TestSizeIsWhatIsHeld(t *testing.T) {
	const large = 100 << 10
	long := strings.Repeat("x", large)
	image := messages.Content{{Type: "image", ImageURL: "data:image/png;base64," + long}}
	blob := &messages.Blob{SHA256: messages.DigestOf([]byte(long)), Size: 1 << 20}
	took := func(s *turn.State, ev messages.Event) int {
		before := s.Size()
		s.Apply(&messages.Frame{First: s.Last + 1, Events: []messages.Event{ev}})
		return s.Size() - before
	}
	var s turn.State
	for _, step := range []struct {
		ev    messages.Event
		large bool
	}{
		{messages.InputAccepted{Input: "u1", Content: image}, true},
		{messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}}, false}, // it was counted when it came
		{messages.InputAccepted{Input: "u2", Content: messages.Content{{Type: "text", Blob: blob}}}, false},
		{messages.ModelCompleted{Turn: "t1", Items: []messages.Item{{Type: messages.ItemReasoning, Raw: []byte(long)}, {Type: messages.ItemCall, CallID: "c1"}}}, true},
		{messages.ToolRequested{Turn: "t1", Call: "c1"}, false},
		{messages.ToolCompleted{Turn: "t1", Call: "c1", Blob: blob}, false},
		{messages.TimerSet{Timer: "later", Input: &messages.Input{Content: image}}, true},
	} {
		if n := took(&s, step.ev); (n >= large) != step.large || n < 0 {
			t.Errorf("%s: the size grew by %d bytes", step.ev.EventType(), n)
		}
	}
}
