package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
)

type (
	hello struct {
		N    int    `json:"n"`
		Text string `json:"t,omitempty"`
	}
	silent struct{}
)

// side is a node with an actor system and nothing else.
type side struct {
	t      *testing.T
	nc     *nats.Conn
	system *actor.ActorSystem
	*transport.Transport
	log *embeddedtest.Words
}

func types() *transport.Types {
	types := transport.NewTypes()
	transport.Register[hello](types, "hello")
	return types
}

func sides(t *testing.T, names ...string) []*side {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	var all []*side
	for _, name := range names {
		s := &side{t: t, log: new(embeddedtest.Words)}
		if s.nc, err = nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.nc.Close)
		quiet := slog.New(slog.DiscardHandler)
		s.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
		t.Cleanup(s.system.Shutdown)
		s.Transport = transport.New(transport.Config{Conn: s.nc, Root: "reprise", Self: name, System: s.system, Types: types(), Logger: slog.New(slog.NewTextHandler(s.log, nil))})
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		if err := s.nc.Flush(); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// hears makes a process that passes on what it hears.
func (s *side) hears(name string) (*actor.PID, chan any) {
	heard := make(chan any, 10_000)
	pid, stop := s.Serve(name, func(_ *actor.PID, m any) { heard <- m })
	s.t.Cleanup(stop)
	return pid, heard
}

func TestMessagesComeInOrder(t *testing.T) {
	both := sides(t, "n1", "n2")
	_, heard := both[1].hears("ear")
	for i := range 1000 {
		both[0].Send(transport.PID("n2", "ear"), nil, &hello{N: i})
	}
	for i := range 1000 {
		if m, ok := (<-heard).(*hello); !ok || m.N != i {
			t.Fatalf("message %d came as %+v", i, m)
		}
	}
}

// An actor of one node asks one of another as it would ask its neighbour.
func TestRequestAcross(t *testing.T) {
	both := sides(t, "n1", "n2")
	pid, err := both[1].system.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*hello); ok {
			ctx.Respond(&hello{N: m.N + 1})
		}
	}), "adder")
	if err != nil {
		t.Fatal(err)
	}
	got, err := both[0].system.Root.RequestFuture(transport.PID("n2", pid.Id), &hello{N: 41}, -1).Result()
	if m, ok := got.(*hello); err != nil || !ok || m.N != 42 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Nobody is left waiting who could be told: of a node that is not there, a process
// that is not there, a type that does not travel, a type that the other does not know.
func TestUndeliverableIsTold(t *testing.T) {
	both := sides(t, "n1", "n2")
	me, heard := both[0].hears("me")
	for name, send := range map[string]func(){
		"no node":    func() { both[0].Send(transport.PID("n3", "ear"), me, &hello{}) },
		"no process": func() { both[0].Send(transport.PID("n2", "nobody"), me, &hello{}) },
		"no type": func() {
			b, err := messages.Pack(&envelope{To: "ear", From: me.Id, Node: "n1", Type: "of tomorrow", Body: []byte("x")})
			if err != nil {
				t.Error(err)
			}
			if err := both[0].nc.Publish("_actor.reprise.to.n2", b); err != nil {
				t.Error(err)
			}
		},
	} {
		send()
		if _, ok := (<-heard).(*actor.DeadLetterResponse); !ok {
			t.Errorf("%s: no dead letter", name)
		}
	}
	both[0].Send(transport.PID("n2", "ear"), me, &silent{})
	if m, ok := (<-heard).(*transport.Undeliverable); !ok || !strings.Contains(m.Err.Error(), "silent") {
		t.Errorf("%+v", m)
	}
	both[0].nc.Close()
	both[0].Send(transport.PID("n2", "ear"), me, &hello{})
	if m, ok := (<-heard).(*transport.Undeliverable); !ok || m.Err == nil {
		t.Errorf("%+v", m)
	}
}

// envelope is a message as it is sent from node to node.
type envelope struct {
	To   string `json:"t"`
	From string `json:"f,omitempty"`
	Node string `json:"n,omitempty"`
	Type string `json:"y"`
	Body []byte `json:"b,omitempty"`
}

// What cannot be read harms nobody: the next message comes.
func TestGarbageHarmsNobody(t *testing.T) {
	both := sides(t, "n1", "n2")
	_, heard := both[1].hears("ear")
	garbage := [][]byte{nil, {0xc1}, bytes.Repeat([]byte{0x91}, 1000), []byte("hello"), []byte(`{"t":"ear"}`)}
	for _, e := range []envelope{
		{To: "ear", Type: "hello", Body: []byte{0xc1}},
		{To: "ear", Type: "hello", Body: []byte{0x81, 0xa1, 'n', 0xa1, 'x'}},
		{To: "ear", Type: "dead", From: "x", Node: "n1"},
		{To: "nobody", Type: "dead", From: "ear", Node: "n2"},
		{To: "ear", Type: "hello", From: "x", Node: "a b>*", Body: []byte{0x81, 0xa1, 'n', 0x07}},
	} {
		b, err := messages.Pack(&e)
		if err != nil {
			t.Fatal(err)
		}
		garbage = append(garbage, b)
	}
	for _, b := range garbage {
		if err := both[0].nc.Publish("_actor.reprise.to.n2", b); err != nil {
			t.Fatal(err)
		}
	}
	both[0].Send(transport.PID("n2", "ear"), nil, &hello{N: 8})
	for {
		if m, ok := (<-heard).(*hello); ok && m.N == 8 {
			break
		}
	}
	if !strings.Contains(both[1].log.String(), "cannot be read") {
		t.Errorf("logged:\n%s", both[1].log)
	}
}

// A message that is too large for the server is told of, and those after it come.
func TestTooLarge(t *testing.T) {
	both := sides(t, "n1", "n2")
	me, heard := both[0].hears("me")
	_, ear := both[1].hears("ear")
	both[0].Send(transport.PID("n2", "ear"), me, &hello{Text: strings.Repeat("x", 2<<20)})
	if m, ok := (<-heard).(*transport.Undeliverable); !ok || !errors.Is(m.Err, nats.ErrMaxPayload) {
		t.Errorf("%+v", m)
	}
	for i := range 3 {
		both[0].Send(transport.PID("n2", "ear"), me, &hello{N: i})
	}
	for i := range 3 {
		if got := fmt.Sprint((<-ear).(*hello).N); got != fmt.Sprint(i) {
			t.Error(got)
		}
	}
}
