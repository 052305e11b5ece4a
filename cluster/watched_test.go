package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A taker wakes agents that owe nothing for each fact that a reply subject may
// not have been told, for the former owner may have died in between.
func TestTakerTellsAgain(t *testing.T) { // A6, A25
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	for eventType, told := range map[string]bool{
		"input.accepted": true, "approval.requested": true, "turn.completed": true, "turn.failed": true, "turn.aborted": true,
		"input.withdrawn": true, "input.dropped": true, "state.patched": false,
	} {
		var w watched
		w.note(eventlog.Head{Agent: a, Time: time.Unix(1, 0), Last: 1, Types: []string{"command.noop", eventType}, Summary: eventlog.Summary{Phase: eventlog.Paused}})
		if got := slices.Contains(w.unsettled(), a); got != told {
			t.Errorf("%s: woken %v, want %v", eventType, got, told)
		}
	}
}
