package actors

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// How large the snapshots of a former life were has no say in when the next life
// leaves one.
func TestNextLifeCountsAnew(t *testing.T) { // A27, A108
	u := unsaved{events: 40, bytes: 20 << 10, size: 1 << 20}
	u.add(&messages.Frame{Events: []messages.Event{messages.AgentDeleted{}}}, 200)
	if u.due(40, 4) {
		t.Error("the next life counts the events of the former one")
	}
	u.add(&messages.Frame{Events: make([]messages.Event, 40)}, 10<<10)
	if !u.due(40, 4) {
		t.Error("the next life waits for as much as the former one had")
	}
}
