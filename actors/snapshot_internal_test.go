package actors

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A delete resets what counts towards the next snapshot, the size of the last one included.
func TestDeleteResetsUnsaved(t *testing.T) { // A27, A108
	u := unsaved{events: 40, bytes: 20 << 10, size: 1 << 20}
	u.add(&messages.Frame{Events: []messages.Event{messages.AgentDeleted{}}}, 200)
	if u.due(40, 4) {
		t.Error("a snapshot is due for events before the delete")
	}
	u.add(&messages.Frame{Events: make([]messages.Event, 40)}, 10<<10)
	if !u.due(40, 4) {
		t.Error("no snapshot is due, as if the one before the delete still counted")
	}
}
