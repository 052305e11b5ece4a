package cluster

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A taker wakes agents that owe nothing for each fact that a reply subject may
// not have been told, for the former owner may have died in between.
func TestTakerTellsAgain(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	for eventType, told := range map[string]bool{
		"input.accepted": true, "approval.requested": true, "turn.completed": true, "turn.failed": true, "turn.aborted": true,
		"input.cancelled": true, "input.dropped": true, "state.patched": false,
	} {
		var w watched
		w.note(eventlog.Head{Agent: a, Time: time.Unix(1, 0), Last: 1, Types: []string{"command.noop", eventType}, Summary: eventlog.Summary{Phase: eventlog.Paused}})
		if got := slices.ContainsFunc(w.unsettled(), func(o owing) bool { return o.agent == a }); got != told {
			t.Errorf("%s: woken %v, want %v", eventType, got, told)
		}
	}
}

// Many partitions that are taken at once are one line of the log; agents that are
// only to tell again are none.
func TestRecoveredIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		to := slog.New(slog.NewTextHandler(&out, nil))
		var r recovered
		for p := range messages.Partition(32) {
			r.tell(to, p, 7, 2, 1)
		}
		r.tell(to, 40, 7, 0, 9)
		<-time.After(2 * toldAfter) // of the bubble's own time
		synctest.Wait()
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "agents=64") || strings.Count(got, "@7") != 32 {
			t.Errorf("it says %s", got)
		}
	})
}
