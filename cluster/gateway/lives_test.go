package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A prompt that was overtaken by its agent's deletion is for the agent's next life if its
// caller still waits. What is known here counts, unless the node was cut off lately; the
// callers of other accounts cannot be seen, and are told to ask again.
func TestPromptOvertakenByDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		steady, gone, across bool
		known                messages.EventNumber
	}{"there": {true, false, false, 2}, "cut off lately": {false, false, false, 0}, "gone": {true, true, false, 2}, "across": {false, false, true, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, nil)
			h.g.Steady = func() bool { return c.steady }
			h.wrote(till, eventlog.Idle, messages.AgentCreated{}, messages.StatePatched{Patch: []byte(`{}`)})
			reply := h.nc.NewInbox()
			if c.across {
				reply = "_R_.abc.1"
			}
			sub, err := h.nc.SubscribeSync(reply)
			h.ok(err)
			h.ok(h.nc.Flush())
			h.g.prompt(&nats.Msg{Subject: messages.Prompt(till), Reply: reply, Data: []byte(`{"prompt":"hello","id":"u1"}`)})
			d := h.next()
			if *d.Known != c.known {
				t.Errorf("event %d is taken for known, want %d", *d.Known, c.known)
			}
			if c.gone {
				h.ok(sub.Unsubscribe())
				h.ok(h.nc.Flush())
			}
			for began := time.Now(); ; began = time.Now() {
				if err = d.overtaken(9); err == nil || time.Since(began) < probe { // else the server has not answered in time
					break
				}
			}
			if refuses := c.gone || c.across; (err != nil) != refuses || refuses && !strings.Contains(err.Error(), `deleted (event 9), and this prompt may have been sent before that: ask again with id "u1"`) {
				t.Errorf("it is refused with %v", err)
			}
			d.answers <- messages.Answer{Err: messages.Refuse(messages.QueueFull, "no room")}
		})
	}
}
