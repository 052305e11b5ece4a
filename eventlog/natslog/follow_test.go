package natslog_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// stalling is the way to a server whose reader stands still once, when a frame of the log
// has come, for longer than the library waits for the rest of a fetch.
type stalling struct {
	net.Conn
	armed *atomic.Bool
}

// Dial makes the connection.
func (s stalling) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return stalling{c, s.armed}, err
}

// Read reads, and stands still before it gives what was read.
func (s stalling) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if bytes.HasPrefix(b[:n], []byte("HMSG")) && bytes.Contains(b[:n], []byte(".log.")) && s.armed.CompareAndSwap(true, false) {
		<-time.After(1500 * time.Millisecond)
	}
	return n, err
}

// A follower stands still while the answer to a fetch is on its way. The library has given
// up by then, without a word; the head comes all the same, and not only with the next one.
func TestFollowStandsStill(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	url := configured(t, "jetstream: enabled")
	armed := new(atomic.Bool)
	open := func(options ...nats.Option) *natslog.Log {
		nc, err := natslog.Connect(url, append(options, nats.Timeout(time.Minute))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		l, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	follower, writer := open(nats.SetCustomDialer(stalling{armed: armed})), open()
	a := logtest.Agent("ada")
	for head, err := range follower.Follow(ctx, a.Partition()) {
		if err != nil {
			t.Fatalf("the head is lost: %v", err)
		}
		if head.Agent == (messages.AgentID{}) { // the past is told
			armed.Store(true)
			grow(t, writer, a, eventlog.Position{}, 1)
			continue
		}
		if head.Agent != a || armed.Load() {
			t.Errorf("head %+v, still armed %v", head, armed.Load())
		}
		return
	}
}
