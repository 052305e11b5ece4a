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

// TestLateAnswers checks that an answer which comes when its request was given up, or that comes
// twice, is not taken for that to a later request, however many there are.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	connect := func() *nats.Conn {
		nc, err := nats.Connect("", nats.InProcessServer(s), nats.ErrorHandler(nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	peer, nc := connect(), connect()
	asked, err := peer.SubscribeSync("s")
	if err != nil || peer.Flush() != nil {
		t.Fatal(err)
	}
	c, err := newConn(nc)
	if err != nil {
		t.Fatal(err)
	}
	respond := func(m *nats.Msg, with string, times int) {
		for range times {
			if err := m.Respond([]byte(with)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(peer.Flush(), nc.Flush()); err != nil { // they are in the slot
			t.Fatal(err)
		}
	}
	for _, late := range []int{0, 1, 100} {
		if _, err := c.ask(t.Context(), &nats.Msg{Subject: "s"}, time.Nanosecond, nil); !errors.Is(err, errNoAnswer) {
			t.Fatalf("%v, want %v", err, errNoAnswer)
		}
		first, err := asked.NextMsgWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		respond(first, "first", late)
		came := make(chan string)
		go func() {
			answer, err := c.ask(t.Context(), &nats.Msg{Subject: "s"}, time.Minute, nil)
			if err != nil {
				t.Error(err)
				answer = new(nats.Msg)
			}
			came <- string(answer.Data)
		}()
		second, err := asked.NextMsgWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		respond(first, "first", 2)
		respond(second, "second", 1)
		if got := <-came; got != "second" {
			t.Errorf("behind %d late answers: %q, want %q", late, got, "second")
		}
	}
	if len(c.slots) != 1 {
		t.Errorf("%d slots were made, want 1", len(c.slots))
	}
}
