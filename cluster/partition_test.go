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

// A taker activates agents that owe nothing but the replies of a recent frame: the owner
// before it may have died between the append and the sending. Others it leaves alone.
func TestTakerSendsReplies(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	for _, each := range []struct {
		replies bool
		later   time.Duration // how much newer the partition's newest frame is
		want    bool
	}{{true, 0, true}, {true, replyWindow, true}, {true, replyWindow + time.Second, false}, {false, 0, false}} {
		var w partition
		w.note(eventlog.Head{Agent: a, Time: time.Unix(100, 0), Last: 1, Summary: eventlog.Summary{Phase: messages.PhaseIdle, Replies: each.replies}})
		w.note(eventlog.Head{Agent: messages.AgentID{Key: "b"}, Time: time.Unix(100, 0).Add(each.later), Last: 1, Summary: eventlog.Summary{Phase: messages.PhaseIdle}})
		if got := slices.ContainsFunc(w.toWake(), func(o wakeup) bool { return o.agent == a }); got != each.want {
			t.Errorf("%+v: activated %v", each, got)
		}
	}
}

// Many partitions that are taken at once are one line of the log; agents that only repeat their
// reports are not in it.
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
