package natslog_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/logtest"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// A30: a writer and a follower live through a restart of the server.
func TestServerRestart(t *testing.T) {
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet, DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	nc, err := srv.Connect(nats.ErrorHandler(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	l, err := natslog.Open(context.Background(), natslog.Config{Conns: []*nats.Conn{nc}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}

	a := logtest.Agent("ada")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	heads := make(chan eventlog.Head, 400) // all that come
	go func() {
		for h, err := range l.Follow(ctx, a.Partition()) {
			if err == nil {
				heads <- h.Head
			}
		}
		close(heads)
	}()

	if h := <-heads; h.Agent != (messages.AgentID{}) {
		t.Fatalf("head %+v in an empty log", h)
	}
	written := make(chan messages.FrameID)
	go write(t, l, a, 300, written)
	var want []messages.FrameID
	for id := range written {
		if want = append(want, id); len(want) == 100 {
			if err := srv.Shutdown(); err != nil {
				t.Fatal(err)
			}
			if err := readOnce(l, a); !errors.Is(err, eventlog.ErrUnavailable) {
				t.Errorf("read without a server: %v", err)
			}
			if err := srv.Restart(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for last := messages.EventNumber(0); last < 300; {
		h := <-heads
		if h.Agent == a && h.First != last+1 {
			t.Fatalf("the follower told event %d after %d", h.First, last)
		}
		last = max(last, h.Last)
	}
	cancel()
	n := 0
	for r, err := range l.Read(context.Background(), a, eventlog.Range{}) {
		if err != nil || r.Frame.ID != want[n] {
			t.Fatalf("frame %d: %v, %v", n, r.Frame, err)
		}
		n++
	}
	if n != 300 || len(want) != 300 {
		t.Fatalf("%d frames written, %d read, want 300", len(want), n)
	}
	for range heads { // until the follower has gone
	}
}

// readOnce reads an agent until something fails.
func readOnce(l eventlog.Reader, a messages.AgentID) error {
	for _, err := range l.Read(context.Background(), a, eventlog.Range{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// write commits n frames one after the other and sends their ids to written.
func write(t *testing.T, l eventlog.Appender, a messages.AgentID, n int, written chan<- messages.FrameID) {
	defer close(written)
	var tail eventlog.Position
	for range n {
		e := logtest.Entry(t, a, tail)
		var err error
		if tail, err = eventlog.Commit(context.Background(), l, e); err != nil {
			t.Error(err)
			return
		}
		written <- e.Frame.ID
	}
}

func TestFollowEndsWithItsConnection(t *testing.T) {
	l, c := openOwn(t)
	heads, errs := 0, 0
	for _, err := range l.Follow(context.Background(), 7) {
		if err != nil {
			errs++
			continue
		}
		heads++ // the marker
		c.Conns[0].Close()
	}
	if heads != 1 || errs != 1 {
		t.Errorf("%d heads and %d errors, want one of each", heads, errs)
	}
	if _, err := l.Append(context.Background(), logtest.Entry(t, logtest.Agent("ada"), eventlog.Position{})); err == nil {
		t.Error("appended over a closed connection")
	}
}

// openOwn opens a log whose only connection the test may close.
func openOwn(t *testing.T) (*natslog.Log, natslog.Config) {
	t.Helper()
	c := natslog.Config{Subjects: freshRoot(), Conns: []*nats.Conn{connect(t)}, Logger: quiet}
	l, err := natslog.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	other := c
	other.Conns = []*nats.Conn{connect(t)}
	t.Cleanup(func() { removeStreams(t, other) })
	return l, c
}
