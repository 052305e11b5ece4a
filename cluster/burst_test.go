package cluster_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// TestBurstOfAddresses publishes inputs for many new agents at once and asks one agent that is
// at work already. Its turns are not held up: a bounded part of the burst is done between two
// of them, and neither the node nor its server loses anything. REPRISE_BURST sets the number.
func TestBurstOfAddresses(t *testing.T) {
	burst := 300
	if n, err := strconv.Atoi(os.Getenv("REPRISE_BURST")); err == nil {
		burst = n
	}
	w := newWorld(t)
	n := w.node(agents(scripted.Func(func(messagesRequest) scripted.Step { return scripted.Say("done") }), nil))
	w.ok(ask(w.ctx, n, "assistant/neighbour", "first", "hello"))
	ended, err := w.nc.SubscribeSync("box.burst")
	w.ok(err)
	w.ok(ended.SetPendingLimits(-1, -1))
	var done atomic.Int64
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for done.Load() < int64(burst) {
			m, err := ended.NextMsgWithContext(w.ctx)
			if err != nil {
				t.Error(err)
				return
			}
			if strings.Contains(string(m.Data), `"turn.completed"`) {
				done.Add(1)
			}
		}
	}()
	begun := time.Now()
	for i := range burst {
		m := nats.NewMsg(fmt.Sprintf("reprise.in.default.assistant.new%d", i))
		m.Header.Set(messages.HeaderReply, "box.burst")
		m.Data = []byte("hello")
		w.ok(w.nc.PublishMsg(m))
	}
	w.ok(w.nc.Flush())
	published := time.Since(begun)
	asks, most, slowest := 0, int64(0), time.Duration(0)
	for busy := true; busy; asks++ {
		before, at := done.Load(), time.Now()
		w.ok(ask(w.ctx, n, "assistant/neighbour", fmt.Sprint("n", asks), "hello"))
		most, slowest = max(most, done.Load()-before), max(slowest, time.Since(at))
		select {
		case <-finished:
			busy = false
		default:
		}
	}
	t.Logf("published in %v, done in %v; %d asks of the neighbour, the slowest took %v, at most %d turns of the burst between two", published, time.Since(begun), asks, slowest, most)
	if most > max(200, int64(burst)/20) {
		t.Errorf("%d turns of the burst came between two of the neighbour", most)
	}
	for _, bad := range []string{"dropping", "lapsed", "failed is activated", "lost"} {
		if i := strings.Index(w.log.String(), bad); i >= 0 {
			t.Errorf("the log says %.300q", w.log.String()[max(0, i-150):])
		}
	}
}
