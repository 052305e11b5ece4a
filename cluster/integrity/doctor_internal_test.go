package integrity

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// Payloads that only the prefix of an imported agent names do not count as named by nothing.
func TestNamedBy(t *testing.T) {
	b := messages.Blob{SHA256: "a", Size: 1}
	for name, c := range map[string]struct {
		ev       messages.Event
		first    messages.EventNumber
		readable bool
	}{
		"result":   {messages.ToolCompleted{Blob: &b}, 8, true},
		"imported": {messages.AgentImported{Frames: &b, Last: 7}, 8, false},
		"detached": {messages.ForkDetached{Frames: &b, Last: 7}, 9, false},
		"no blob":  {messages.AgentImported{Last: 7}, 8, true},
	} {
		all, readable := namedBy(&messages.Frame{First: c.first, Events: []messages.Event{c.ev}})
		if want := len(messages.BlobsOf(c.ev)); len(all) != want || readable != c.readable {
			t.Errorf("%s: got %d payloads, readable %t; want %d, %t", name, len(all), readable, want, c.readable)
		}
	}
}
