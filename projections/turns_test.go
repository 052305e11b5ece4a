package projections

import (
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// A turn is found by its id without a search of those that started before: a list of turns would take
// time that grows with the square of their number.
func TestTurnByID(t *testing.T) {
	turns := Turns{turns: []Turn{{ID: "t9", Started: 1}, {ID: "t2", Started: 2}, {ID: "t5", Started: 5}, {ID: "t8", Started: 8}}}
	for id, want := range map[messages.TurnID]messages.EventNumber{"t8": 8, "t5": 5, "t2": 2, "t9": 0, "t6": 0, "t12": 0, "": 0} {
		var got messages.EventNumber
		if turn := turns.turn(id); turn != nil {
			got = turn.Started
		}
		if got != want {
			t.Errorf("turn %q: started with event %d, want %d", id, got, want)
		}
	}
}
