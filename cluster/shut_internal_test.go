package cluster

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// connected returns a connection to a server of its own.
func connected(t *testing.T) *nats.Conn {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// A partition that is given up stops although its actor is within a message, as one that waits
// for its log is: what it does is cut off first.
func TestShutCutsOff(t *testing.T) {
	var said bytes.Buffer
	nc := connected(t)
	h := newHost(nc, messages.Subjects{}, slog.New(slog.NewTextHandler(&said, nil)))
	t.Cleanup(h.stop)
	waits, cut := make(chan struct{}), make(chan struct{})
	props := actor.PropsFromFunc(func(c actor.Context) {
		if _, started := c.Message().(*actor.Started); started {
			close(waits)
			<-cut
		}
	})
	if err := h.spawn(props, 7, 1, func() { close(cut) }); err != nil {
		t.Fatal(err)
	}
	<-waits
	if h.shut(7); said.Len() > 0 {
		t.Errorf("it is said: %s", said.String())
	}
}
