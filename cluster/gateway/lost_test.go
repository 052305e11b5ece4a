package gateway

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// members is what a node knows of the others, and whether it trusts that.
type members struct {
	mu      sync.Mutex
	gone    bool // the other one
	trusted bool
}

func (m *members) set(gone, trusted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone, m.trusted = gone, trusted
}

func (m *members) alive(string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.gone
}

func (m *members) owner(messages.Partition) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.trusted {
		return ""
	}
	return "n1"
}

// alone returns a broker of node n1, which hosts all agents, beside the node that m is about.
func (h *house) alone(m *members) *Broker {
	return NewBroker(h.g.Conn, messages.Subjects{}, new(projections.Agents), slog.New(slog.DiscardHandler), func(messages.AgentID, messages.Epoch) {},
		Nodes{Self: "n1", OwnerOf: m.owner, Hosts: func(messages.Partition) bool { return true }, Alive: m.alive})
}

// The streams of an endpoint that is gone are ended once each: those of open inputs, and of inputs that
// ended while that was not known yet. Those of living endpoints, or of one that is away for a moment, are left
// alone, and so is everything while this node is not sure of what it owns.
func TestLostEndpoint(t *testing.T) {
	h := newHouse(t, nil)
	others := &members{trusted: true}
	broker, start := h.alone(others), time.Now()
	subs := make(map[string]*nats.Subscription)
	streaming := func(inputs ...string) {
		streams := make(map[string]messages.Stream)
		for _, input := range inputs {
			if subs[input] == nil {
				sub, err := h.nc.SubscribeSync(h.nc.NewInbox())
				h.ok(err)
				subs[input] = sub
			}
			streams[input] = messages.Stream{Node: "n2", Reply: subs[input].Subject}
		}
		h.ok(h.nc.Flush())
		broker.Streaming(till, streams)
	}
	lost := func(after time.Duration, want ...string) {
		t.Helper()
		var got []string
		for _, s := range broker.lostStreams(start.Add(after)) {
			got = append(got, s.input)
			broker.endStream(s)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	streaming("open", "ended")
	lost(0)
	others.set(true, true)
	lost(time.Second)
	others.set(false, true)
	lost(time.Second + lostAfter) // it was away for a moment
	others.set(true, false)
	broker.Moved(till.Partition()) // nothing has: this node is not sure
	lost(2 * time.Second)
	lost(2*time.Second + lostAfter)
	others.set(true, true)
	streaming("open")
	lost(2*time.Second + lostAfter)
	lost(2*time.Second+2*lostAfter, "ended", "open")
	streaming("open")
	lost(2*time.Second + 3*lostAfter) // once
	streaming("open", "long ago")
	streaming("open")
	lost(time.Minute)
	lost(time.Minute + lostAfter)
	for _, input := range []string{"open", "ended"} {
		first, err := subs[input].NextMsgWithContext(h.ctx)
		h.ok(err)
		last, err := subs[input].NextMsgWithContext(h.ctx)
		h.ok(err)
		if why := first.Header.Get("Nats-Service-Error"); !strings.Contains(why, `ask again with id "`+input+`"`) || len(last.Data)+len(last.Header) > 0 {
			t.Errorf("%s: %q, then %+v", input, why, last)
		}
	}
	h.ok(h.g.Conn.Flush())
	h.ok(h.nc.Flush())
	for input, sub := range subs {
		if n, _, err := sub.Pending(); n != 0 || err != nil {
			t.Errorf("%s: %d more messages, %v", input, n, err)
		}
	}
}

// The error waits for a caller that connects again only after a while, as when its server went with
// the node.
func TestLostEndpointOfALateCaller(t *testing.T) {
	h := newHouse(t, nil)
	s := &streamed{Stream: messages.Stream{Node: "n2", Reply: h.nc.NewInbox()}, agent: till, input: "u1"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.g.Broker.endStream(s)
	}()
	sub, err := h.nc.SubscribeSync(s.Reply)
	h.ok(err)
	if msg, err := sub.NextMsgWithContext(h.ctx); err != nil || msg.Header.Get("Nats-Service-Error") == "" {
		t.Errorf("%+v, %v", msg, err)
	}
	<-done
}

// What this node publishes of its own agents is not streamed twice while it is not sure that it
// still owns them.
func TestOwnPiecesComeOnce(t *testing.T) {
	h := newHouse(t, nil)
	broker := h.alone(&members{})
	_, leave := broker.follow(till)
	defer leave()
	if _, subscribed := broker.held(); subscribed != 0 {
		t.Error("it has subscribed to what it publishes itself")
	}
}
