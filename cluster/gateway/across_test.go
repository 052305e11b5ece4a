package gateway

import (
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// linked is a node's transport and a connection of its own.
func (h *house) linked(node string) (*transport.Transport, *nats.Conn) {
	h.t.Helper()
	nc, err := nats.Connect(h.nc.ConnectedUrl(), nats.Timeout(time.Minute))
	h.ok(err)
	h.t.Cleanup(nc.Close)
	quiet := slog.New(slog.DiscardHandler)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }), actor.WithDeadLetterRequestLogging(false))
	h.t.Cleanup(system.Shutdown)
	types := transport.NewTypes()
	Travel(types)
	t := transport.New(transport.Config{Conn: nc, Root: "reprise", Self: node, System: system, Types: types, Logger: quiet})
	h.ok(t.Open())
	h.ok(nc.Flush())
	return t, nc
}

// door opens the doors of a node beside the house's own, which owns all agents.
func (h *house) door(node string) *Gateway {
	h.t.Helper()
	t, nc := h.linked(node)
	cfg := h.g.Config
	cfg.Conn, cfg.Agents = nc, new(projections.Agents)
	cfg.Nodes = Nodes{Self: node, Transport: t, OwnerOf: func(messages.Partition) string { return node }}
	cfg.Hub = NewHub(nc, cfg.Subjects, cfg.Agents, cfg.Logger, func(messages.AgentID, messages.Epoch) {}, cfg.Nodes)
	g := New(cfg)
	h.t.Cleanup(g.Close)
	h.ok(g.Open())
	h.ok(nc.Flush())
	return g
}

// talker speaks for another node and hears what it is answered.
type talker struct {
	h    *house
	t    *transport.Transport
	self *actor.PID
	came chan said
}

type said struct {
	from *actor.PID
	m    any
}

func (h *house) talker(t *transport.Transport, name string) *talker {
	h.t.Helper()
	a := &talker{h: h, t: t, came: make(chan said, 100)}
	var stop func()
	a.self, stop = t.Serve(name, func(from *actor.PID, m any) { a.came <- said{from, m} })
	h.t.Cleanup(stop)
	return a
}

func (a *talker) next() said {
	a.h.t.Helper()
	select {
	case s := <-a.came:
		return s
	case <-a.h.ctx.Done():
		a.h.t.Fatal("nothing is said")
		return said{}
	}
}

// A request that a node was not told to answer it does not answer.
func TestPagesAreAnsweredOnce(t *testing.T) {
	h := newHouse(t, nil)
	h.lived()
	h.door("n2")
	link, _ := h.linked("n3")
	asker := h.talker(link, "asker")
	pass := func() (inbox *nats.Subscription, at *actor.PID) {
		inbox, err := h.nc.SubscribeSync(h.nc.NewInbox())
		h.ok(err)
		h.ok(h.nc.Flush())
		link.Send(transport.PID("n2", doorName), asker.self, &passed{Subject: messages.Subjects{}.Query(till), Reply: inbox.Subject, Data: []byte(`{"view":"state"}`)})
		got := asker.next()
		if _, is := got.m.(*taken); !is || got.from == nil {
			t.Fatalf("%T", got.m)
		}
		return inbox, got.from
	}
	untold, _ := pass()
	for range 20 { // by then the first would be answered, too
		inbox, at := pass()
		link.Send(at, nil, &goOn{})
		for {
			msg, err := inbox.NextMsgWithContext(h.ctx)
			h.ok(err)
			if len(msg.Data) == 0 {
				break
			}
		}
	}
	if n, _, err := untold.Pending(); n != 0 || err != nil {
		t.Errorf("%d messages have come, %v", n, err)
	}
}

// A node that says too late that it has a request is not told to answer it: it was
// answered elsewhere.
func TestPageOfASlowNode(t *testing.T) {
	h := newHouse(t, nil)
	h.lived()
	h.g.Close()
	h.door("n2")
	link, _ := h.linked("slow")
	door := h.talker(link, doorName)
	sub, err := h.nc.SubscribeSync(h.nc.NewInbox())
	h.ok(err)
	h.ok(h.nc.PublishMsg(&nats.Msg{Subject: messages.Subjects{}.Query(till), Reply: sub.Subject, Data: []byte(`{"view":"turns","cursor":"slow.1"}`)}))
	asked := door.next()
	if _, is := asked.m.(*passed); !is {
		t.Fatalf("%T", asked.m)
	}
	_, err = sub.NextMsgWithContext(h.ctx)
	h.ok(err)
	late := h.talker(link, "late")
	link.Send(asked.from, late.self, &taken{})
	if got := late.next(); func() bool { _, dead := got.m.(*actor.DeadLetterResponse); return !dead }() {
		t.Errorf("it is told %T", got.m)
	}
}

// What a dead letter says of a hearer does not end the one that follows after it; who
// follows no more without a word is forgotten, and who asks again is not.
func TestHearersEndByThemselves(t *testing.T) {
	h := newHouse(t, nil)
	hub := h.door("n2").Hub
	link, _ := h.linked("n3")
	other := h.talker(link, hubName)
	follows := func() {
		link.Send(transport.PID("n2", hubName), other.self, &follow{till.Full()})
		if _, is := other.next().m.(*reached); !is {
			t.Fatal("it is not followed")
		}
	}
	hears := func() *hearer {
		hub.mu.Lock()
		defer hub.mu.Unlock()
		return hub.hearers[till]["n3"]
	}
	follows()
	first := hears()
	hub.unheard(other.self, till.Full(), first)
	follows()
	hub.unheard(other.self, till.Full(), first) // told again, late
	if hears() == nil {
		t.Fatal("what follows anew is ended by what was before")
	}
	hub.Delta(actors.Delta{Agent: till, Turn: "t", Kind: "text", Text: "hello"})
	if m, is := other.next().m.(*spoken); !is || m.Text != "hello" {
		t.Errorf("it hears %+v", m)
	}
	follows()
	hub.forgetSilent(time.Now().Add(forgetAfter / 2))
	if hears() == nil {
		t.Error("who has asked is forgotten")
	}
	hub.forgetSilent(time.Now().Add(forgetAfter + time.Second))
	if hears() != nil {
		t.Error("who asks no more is told for ever")
	}
}
