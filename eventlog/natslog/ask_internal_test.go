package natslog

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// TestStoredAt checks that an acknowledgement is read as the server writes it, without an
// allocation, and that what looks otherwise is decoded, and costs no wrong sequence.
func TestStoredAt(t *testing.T) {
	for answer, want := range map[string]uint64{
		`{"stream":"REPRISE_LOG_3","seq":1}`:                           1,
		`{"stream":"S","seq":18446744073709551615}`:                    18446744073709551615,
		`{"stream":"S","domain":"D","seq":7}`:                          7,
		`{"stream":"S","seq":7,"duplicate": true}`:                     7,
		`{"stream":"S", "seq": 7}`:                                     7,
		`{"stream":"S","seq":0}`:                                       0,
		`{"stream":"","seq":7}`:                                        0,
		`{"stream":"S","seq":-7}`:                                      0,
		`{"stream":"S","seq":18446744073709551616}`:                    0,
		`{"stream":"S","seq":7`:                                        0,
		`{"stream":"S"}`:                                               0,
		`{"error":{"code":400,"err_code":10071},"stream":"S","seq":7}`: 0,
		``: 0,
	} {
		if got, err := storedAt([]byte(answer)); got != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d and %v, want %d", answer, got, err, want)
		}
	}
	ack := []byte(`{"stream":"REPRISE_LOG_3","seq":123456}`)
	if n := testing.AllocsPerRun(100, func() { _, _ = storedAt(ack) }); n != 0 {
		t.Errorf("reading one allocates %v objects", n)
	}
}

// connected returns two connections to a server without JetStream.
func connected(t *testing.T) (c *conn, peer *nats.Conn) {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	connect := func() *nats.Conn {
		nc, err := nats.Connect("", nats.InProcessServer(s), nats.ErrorHandler(nil), nats.ReconnectBufSize(-1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	if c, err = newConn(connect()); err != nil {
		t.Fatal(err)
	}
	return c, connect()
}

// asked returns a connection whose requests to subject s are taken by a peer.
func asked(t *testing.T) (c *conn, peer *nats.Conn, took *nats.Subscription) {
	t.Helper()
	c, peer = connected(t)
	took, err := peer.SubscribeSync("s")
	if err := errors.Join(err, peer.Flush()); err != nil {
		t.Fatal(err)
	}
	return c, peer, took
}

// TestLateAnswers checks that an answer which comes when its request was given up, or that comes
// twice, is not taken for that to a later request, however many there are, and that a subscription
// which brought no answer, as one that the server refused, is not used again.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	c, peer, took := asked(t)
	respond := func(m *nats.Msg, with string, times int) {
		for range times {
			if err := m.Respond([]byte(with)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(peer.Flush(), c.nc.Flush()); err != nil { // they are in the slot
			t.Fatal(err)
		}
	}
	var before *nats.Msg
	for _, times := range []int{1, 2, 100} {
		if _, err := c.requestWithin(t.Context(), &nats.Msg{Subject: "s"}, time.Nanosecond); !errors.Is(err, errNoAnswer) {
			t.Fatalf("%v, want %v", err, errNoAnswer)
		}
		if n := c.nc.NumSubscriptions(); n != 0 || len(c.slots) != 0 {
			t.Errorf("%d subscriptions, and %d slots, are kept of a request without an answer", n, len(c.slots))
		}
		late, err := took.NextMsgWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"first", "second"} {
			came := make(chan string)
			go func() {
				answer, err := c.requestWithin(t.Context(), &nats.Msg{Subject: "s"}, time.Minute)
				if err != nil {
					t.Error(err)
					answer = new(nats.Msg)
				}
				came <- string(answer.Data)
			}()
			m, err := took.NextMsgWithContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if respond(late, "late", times); before != nil {
				respond(before, "before", 2)
			}
			respond(m, want, times)
			if got := <-came; got != want {
				t.Errorf("answered %d times: %q, want %q", times, got, want)
			}
			before = m
		}
		if len(c.slots) != 1 {
			t.Errorf("%d slots were made, want 1", len(c.slots))
		}
		c.drop(<-c.slots)
		before = nil
	}
}

// TestAnswerLostWithTheConnection checks that a request does not wait for its answer when the
// connection has broken or was closed.
func TestAnswerLostWithTheConnection(t *testing.T) {
	t.Parallel()
	c, _, took := asked(t)
	for _, end := range []func() error{c.nc.ForceReconnect, func() error { c.nc.Close(); return nil }} {
		back := c.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
		came := make(chan error)
		go func() {
			_, err := c.requestWithin(t.Context(), &nats.Msg{Subject: "s"}, time.Minute)
			came <- err
		}()
		if _, err := took.NextMsgWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := <-came; !errors.Is(err, errBroken) {
			t.Errorf("%v, want %v", err, errBroken)
		}
		<-back
	}
}
