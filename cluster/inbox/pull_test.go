package inbox

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// What comes of a stream is a message whatever its headers say; what the server says
// of the asking is not.
func TestOnlyTheServerSpeaksOfTheConsumer(t *testing.T) { // A102
	at := install(t)
	p, err := pull(at.conn, "NOWHERE", "none", nil, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if _, err := at.conn.SubscribeSync(p.ask); err != nil { // else the server says that nobody listens
		t.Fatal(err)
	}
	forged := &nats.Msg{Subject: "reprise.inq.0.in.default.assistant.a", Header: nats.Header{"Status": {"409"}, "Description": {"Consumer Deleted"}}}
	for range batch/2 + 1 {
		p.msgs <- forged
		if msg, err := p.next(at.ctx); err != nil || msg != forged {
			t.Fatalf("%v, %v", msg, err)
		}
	}
	for _, said := range []nats.Header{
		{"Status": {"100"}, "Description": {"Idle Heartbeat"}},
		{"Status": {"408"}, "Description": {"Request Timeout"}, "Nats-Pending-Messages": {"3"}},
	} {
		p.wanted = batch
		if err := p.told(said); err != nil {
			t.Errorf("%v: %v", said, err)
		}
	}
	for _, said := range []nats.Header{{"Status": {"503"}}, {"Status": {"409"}, "Description": {"Leadership Change"}}, {"Status": {"409"}, "Description": {"Server Shutdown"}}} {
		if err := p.told(said); !errors.Is(err, errSilent) {
			t.Errorf("%v: %v", said, err)
		}
	}
	for _, said := range []nats.Header{{"Status": {"400"}}, {"Status": {"409"}, "Description": {"Consumer Deleted"}}} {
		if err := p.told(said); err == nil || errors.Is(err, errSilent) {
			t.Errorf("%v: %v", said, err)
		}
	}
	p.stop()
	if _, err := p.next(at.ctx); err == nil {
		t.Error("it goes on after its end")
	}
}

// A process that stood still has not heard what came meanwhile: the consumer is not
// silent.
func TestWhatHasComeIsNoSilence(t *testing.T) {
	for range 50 { // which of two a select takes is chance
		p := &puller{msgs: make(chan *nats.Msg, 1), quiet: time.NewTimer(0)}
		p.msgs <- &nats.Msg{}
		if _, err := p.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
