package natslog_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// TestRequestsWhileTheServerIsAway checks that requests to a server that is away, and fetches, fail
// at once and leave nothing behind: the library keeps an entry for each that it could not send.
func TestRequestsWhileTheServerIsAway(t *testing.T) { // A30
	t.Parallel()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet, DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	away := make(chan struct{})
	nc, err := srv.Connect(nats.ErrorHandler(nil), nats.DisconnectErrHandler(func(*nats.Conn, error) { close(away) }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	newest, err := natslog.Newest(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jetStream(t, natslog.Config{Conns: []*nats.Conn{nc}}).CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	fetch, err := natslog.Fetch(t.Context(), nc, "S")
	if err != nil {
		t.Fatal(err)
	}
	if err := newest(t.Context(), "S"); err != nil { // it subscribes to its answer, and that is kept
		t.Fatal(err)
	}
	subscribed := nc.NumSubscriptions()
	if err := srv.Shutdown(); err != nil {
		t.Fatal(err)
	}
	<-away
	for range 100 {
		if err := newest(t.Context(), "S"); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("%v, want %v", err, eventlog.ErrUnavailable)
		}
		if err := fetch(t.Context()); !errors.Is(err, eventlog.ErrUnavailable) {
			t.Errorf("fetch: %v, want %v", err, eventlog.ErrUnavailable)
		}
	}
	if n := nc.NumSubscriptions(); n != subscribed {
		t.Errorf("the connection keeps %d subscriptions, want %d", n, subscribed)
	}
	if waiting := reflect.ValueOf(nc).Elem().FieldByName("respMap"); waiting.Len() != 0 {
		t.Errorf("the connection keeps %d entries", waiting.Len())
	}
}

// dialed are the sockets of a connection.
type dialed chan net.Conn

// Dial dials and keeps the socket.
func (d dialed) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err == nil {
		d <- conn
	}
	return conn, err
}

// TestPurgeWhoseConnectionBreaks checks that a purge, which may take long, does not wait for an
// answer that was lost with the connection.
func TestPurgeWhoseConnectionBreaks(t *testing.T) {
	t.Parallel()
	url, sockets := configured(t, ""), make(dialed, 10)
	nc, err := nats.Connect(url, nats.SetCustomDialer(sockets))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	server, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := server.Subscribe("$JS.API.STREAM.PURGE.S", func(*nats.Msg) { _ = (<-sockets).Close() }); err != nil {
		t.Fatal(err)
	}
	if err := server.Flush(); err != nil {
		t.Fatal(err)
	}
	purge, err := natslog.Purge(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := purge(ctx, "S"); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("%v, want %v", err, eventlog.ErrUnavailable)
	}
}

// TestCrowdOfRequests checks that few of many requests to a stream that does not answer are
// sent, that all are answered once it does, and that another stream is asked meanwhile.
func TestCrowdOfRequests(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect(configured(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	const crowd = 4 * natslog.AskedAtOnce
	slow := make(chan *nats.Msg, crowd)
	nothing := []byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)
	subscribe := func(stream string, handle nats.MsgHandler) {
		if _, err := nc.Subscribe("$JS.API.STREAM.MSG.GET."+stream, handle); err != nil {
			t.Fatal(err)
		}
	}
	subscribe("SLOW", func(m *nats.Msg) { slow <- m })
	subscribe("QUICK", func(m *nats.Msg) { _ = m.Respond(nothing) })
	newest, err := natslog.Newest(nc)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error)
	for range crowd {
		go func() { answered <- newest(t.Context(), "SLOW") }()
	}
	held := make([]*nats.Msg, natslog.AskedAtOnce)
	for i := range held {
		held[i] = <-slow
	}
	for range crowd { // each goes behind what has been sent to the other stream
		if err := newest(t.Context(), "QUICK"); err != nil {
			t.Error(err)
		}
	}
	if n := len(slow); n > 0 {
		t.Errorf("%d requests were sent, want %d", natslog.AskedAtOnce+n, natslog.AskedAtOnce)
	}
	go func() {
		for _, m := range held {
			_ = m.Respond(nothing)
		}
		for range crowd - len(held) {
			_ = (<-slow).Respond(nothing)
		}
	}()
	for range crowd {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
}
