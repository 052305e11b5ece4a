package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/transport"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// nodes opens the doors of several nodes in place of the house's own. Agents belong to
// the node that owner names, and the house's log is that of all.
func (h *house) nodes(owner func(messages.Partition) string, ids ...string) (all []*Gateway) {
	h.t.Helper()
	h.g.Close()
	quiet := slog.New(slog.DiscardHandler)
	for _, id := range ids {
		nc, err := nats.Connect(h.nc.ConnectedUrl(), append(h.ways[id], nats.Timeout(time.Minute))...)
		h.ok(err)
		h.t.Cleanup(nc.Close)
		system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }), actor.WithDeadLetterRequestLogging(false))
		h.t.Cleanup(system.Shutdown)
		types := transport.NewTypes()
		Travel(types)
		cfg := h.g.Config
		cfg.Conn, cfg.Agents = nc, new(projections.Agents)
		cfg.Nodes = Nodes{Self: id, OwnerOf: owner, Transport: transport.New(transport.Config{Conn: nc, Root: "reprise", Self: id, System: system, Types: types, Logger: quiet})}
		cfg.Hub = NewHub(nc, cfg.Subjects, cfg.Agents, quiet, func(messages.AgentID, messages.Epoch) {}, cfg.Nodes)
		h.ok(cfg.Transport.Open())
		g := New(cfg)
		h.t.Cleanup(g.Close)
		h.ok(g.Open())
		h.ok(nc.Flush())
		all = append(all, g)
	}
	return all
}

// eventually looks again and again; only the house's time bounds it.
func (h *house) eventually(what string, is func() bool) {
	h.t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			h.t.Fatalf("%s: it did not happen", what)
		}
	}
}

// held is how many agents are followed here, by here elsewhere, and from elsewhere here.
func (h *Hub) held() [3]int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return [3]int{len(h.feeds), len(h.aimed), len(h.hearers)}
}

func at(node string) func(messages.Partition) string {
	return func(messages.Partition) string { return node }
}

func numbered(i int) messages.AgentID {
	return messages.AgentID{Tenant: "default", Kind: "support", Key: fmt.Sprint("k", i)}
}

// barred is a way to a server that can be barred.
type barred struct {
	mu   sync.Mutex
	conn net.Conn
	bar  bool
}

// Dial makes a connection where the way is free.
func (w *barred) Dial(network, address string) (c net.Conn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bar {
		return nil, errors.New("the way is barred")
	}
	w.conn, err = net.Dial(network, address)
	return w.conn, err
}

// set bars the way and ends the connection, or frees it.
func (w *barred) set(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bar = on; on {
		_ = w.conn.Close()
	}
}

// barred is the way of a node whose doors are opened after that. As a node's own
// connections it keeps nothing while it is broken.
func (h *house) barred(node string) *barred {
	w := &barred{}
	h.ways = map[string][]nats.Option{node: {
		nats.SetCustomDialer(w), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0),
	}}
	return w
}

// What an owner does while its connection is broken is looked for by the other nodes'
// hubs as soon as it is back: their own connections know of nothing.
func TestTheOwnersConnectionBreaks(t *testing.T) {
	h := newHouse(t, nil)
	way := h.barred("n2")
	nodes := h.nodes(at("n2"), "n1", "n2")
	door, owner := nodes[0].Hub, nodes[1].Hub
	f, leave := door.follow(till)
	defer leave()
	aim := func() aimed {
		door.mu.RLock()
		defer door.mu.RUnlock()
		return *door.aimed[till]
	}
	h.eventually("the owner tells the door", func() bool { return aim().confirmed })
	asked := aim().asked
	_, _ = f.take()
	way.set(true)
	h.eventually("the connection is broken", func() bool { return owner.conn.Status() == nats.RECONNECTING })
	owner.Committed(actors.Commit{Agent: till, Frame: &messages.Frame{ID: "f", First: 1, Epoch: 1, Events: []messages.Event{accepted("u1", messages.Started, "t1")}}})
	way.set(false)
	var first item
	h.eventually("the door's follower hears of it", func() bool {
		items, _ := f.take()
		for _, is := range items { // one that has reached nothing answers a door that has asked twice
			if is.reached != 0 || is.commit != nil {
				first = is
				return true
			}
		}
		return false
	})
	if first.reached != 1 || first.commit != nil {
		t.Errorf("%+v", first)
	}
	if !aim().asked.Equal(asked) && time.Since(asked) < confirmAfter {
		t.Error("the door has asked anew")
	}
	owner.Delta(actors.Delta{Agent: till, Turn: "t", Kind: "text", Text: "hello"})
	h.eventually("and of what comes then", func() bool {
		items, _ := f.take()
		return slices.ContainsFunc(items, func(is item) bool { return is.delta != nil })
	})
}

// The end of a reply goes into a broken connection: an attentive caller, to whom no
// later number tells of it, is told when that is back.
func TestTheEndIsLost(t *testing.T) {
	h := newHouse(t, nil)
	way := h.barred("n1")
	g := h.nodes(at("n1"), "n1")[0]
	h.g = g
	sub, err := h.nc.SubscribeSync(h.nc.NewInbox())
	h.ok(err)
	h.ok(h.nc.PublishMsg(&nats.Msg{Subject: messages.Prompt(till), Reply: sub.Subject, Header: nats.Header{messages.HeaderAlive: {"1"}}, Data: []byte(`{"prompt":"hello","id":"u1"}`)}))
	d := h.next()
	n := h.wrote(till, eventlog.Running, accepted("u1", messages.Started, "t1"), messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}, MaxSteps: 5}, asks("t1", "m1", "u1"))
	d.answers <- messages.Answer{N: n, Turn: "t1"}
	came := 0
	next := func() (part, alive string) {
		t.Helper()
		msg, err := sub.NextMsgWithContext(h.ctx)
		h.ok(err)
		if part = msg.Header.Get(messages.HeaderPart); part != "" {
			came++
		}
		return part, msg.Header.Get(messages.HeaderAlive)
	}
	for came < 2 { // the acknowledgement and the facts
		next()
	}
	way.set(true)
	h.eventually("the connection is broken", func() bool { return g.Conn.Status() == nats.RECONNECTING })
	h.wrote(till, eventlog.Idle, says("t1", "m1", "hi"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "hi"})
	h.eventually("the reply has ended", func() bool { streams, _ := g.Load(); return streams == 0 })
	way.set(false)
	for {
		part, alive := next()
		if sent, _ := strconv.Atoi(alive); sent > came {
			break
		}
		if part != "" {
			t.Fatalf("part %s has come", part)
		}
	}
}

// When a thousand streams through another node's door have ended, neither node holds
// anything of them.
func TestHubsForget(t *testing.T) {
	h := newHouse(t, nil)
	nodes := h.nodes(at("n2"), "n1", "n2")
	door, owner := nodes[0].Hub, nodes[1].Hub
	const streams = 1000
	feeds, leaves := make([]*feed, streams), make([]func(), streams)
	for i := range streams {
		feeds[i], leaves[i] = door.follow(numbered(i))
	}
	h.eventually("the owner tells the door of all", func() bool { return owner.held() == [3]int{0, 0, streams} })
	for i := range streams {
		owner.Delta(actors.Delta{Agent: numbered(i), Turn: "t", Kind: "text", Text: "hello"})
	}
	for i, f := range feeds {
		h.eventually(fmt.Sprintf("agent %d is heard", i), func() bool {
			items, _ := f.take()
			for _, it := range items {
				if it.delta != nil {
					return true
				}
			}
			return false
		})
	}
	for _, leave := range leaves {
		leave()
	}
	h.eventually("nothing is held", func() bool { return door.held() == [3]int{} && owner.held() == [3]int{} })
}

// A door whose node has died is told of nothing any more once it was missed.
func TestHubsForgetTheDead(t *testing.T) {
	h := newHouse(t, nil)
	nodes := h.nodes(at("n2"), "n1", "n2")
	door, owner := nodes[0].Hub, nodes[1].Hub
	_, leave := door.follow(till)
	defer leave()
	h.eventually("the owner tells the door", func() bool { return owner.held()[2] == 1 })
	door.conn.Close()
	h.eventually("the door is forgotten", func() bool {
		owner.Delta(actors.Delta{Agent: till, Turn: "t", Kind: "text", Text: "hello"})
		return owner.held()[2] == 0
	})
}

// What an agent below says reaches who follows the one above it, also where the door,
// the agent and the one below it are on three nodes.
func TestChildSpeaksAcrossThreeNodes(t *testing.T) {
	h := newHouse(t, nil)
	child := numbered(0)
	for i := 1; child.Partition() == till.Partition(); i++ {
		child = numbered(i)
	}
	nodes := h.nodes(func(p messages.Partition) string {
		if p == till.Partition() {
			return "parents"
		}
		return "childs"
	}, "door", "parents", "childs")
	door, parents, childs := nodes[0].Hub, nodes[1].Hub, nodes[2].Hub
	f, leave := door.follow(till)
	defer leave()
	h.eventually("the parent's owner tells the door", func() bool { return parents.held()[2] == 1 })
	childs.Delta(actors.Delta{Agent: child, Turn: "below", Call: "m", Kind: "text", Text: "hello", Above: []messages.Caller{{Agent: till.Full(), Turn: "t", Call: "c"}}})
	var got actors.Delta
	h.eventually("the door hears the child", func() bool {
		items, _ := f.take()
		for _, it := range items {
			if it.delta != nil {
				got = *it.delta
			}
		}
		return got.Child != ""
	})
	if got.Agent != till || got.Turn != "t" || got.Call != "c" || got.Kind != "child.text" || got.Text != "hello" || got.Child != child.String() {
		t.Errorf("%+v", got)
	}
}

// The next page of a view goes to the node that has begun it, through whichever door it
// is asked for: the log is read once. Without that node any other answers.
func TestPagesGoOnElsewhere(t *testing.T) {
	h := newHouse(t, nil)
	written := h.lived()
	h.nodes(at("n1"), "n1", "n2")
	for range 6 { // a door takes half of the pages
		h.readOnce("history", written)
	}
	want := h.from("turns", 1001, 100)
	var got []string
	for line, err := range h.client.Query(h.ctx, "support/till", messages.Query{View: "turns", From: 1001, Limit: 100, Cursor: "gone.ABC"}) {
		h.ok(err)
		got = append(got, string(line))
	}
	if len(want) != 100 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("a page of a node that is gone: %d lines, want %d", len(got), len(want))
	}
}

// A caller that wants to hear that we are there is told soon, and how much was sent;
// its messages are numbered. Others are told nothing that the agent protocol does not
// have.
func TestAttentiveCallers(t *testing.T) { // A100
	h := newHouse(t, nil)
	listen := func(header nats.Header, body string) *nats.Subscription {
		sub, err := h.nc.SubscribeSync(h.nc.NewInbox())
		h.ok(err)
		h.ok(h.nc.PublishMsg(&nats.Msg{Subject: messages.Prompt(till), Reply: sub.Subject, Header: header, Data: []byte(body)}))
		return sub
	}
	next := func(sub *nats.Subscription) *nats.Msg {
		t.Helper()
		msg, err := sub.NextMsgWithContext(h.ctx)
		h.ok(err)
		return msg
	}
	attentive := listen(nats.Header{messages.HeaderAlive: {"1"}}, `{"prompt":"hello","id":"u1"}`)
	d := h.next()
	if msg := next(attentive); msg.Header.Get(messages.HeaderAlive) != "0" || len(msg.Data) > 0 || msg.Header.Get(messages.HeaderPart) != "" {
		t.Errorf("first came %v %s", msg.Header, msg.Data)
	}
	plain := listen(nil, `{"prompt":"hello","id":"u1"}`)
	n := h.wrote(till, eventlog.Running, accepted("u1", messages.Started, "t1"), messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}, MaxSteps: 5}, asks("t1", "m1", "u1"))
	d.answers <- messages.Answer{N: n, Turn: "t1"}
	h.next().answers <- messages.Answer{N: n, Turn: "t1", Duplicate: true}
	parts, told := 0, 0
	for told == 0 || parts < 2 { // the acknowledgement, the facts, then how many these were
		msg := next(attentive)
		if msg.Header.Get(messages.HeaderPart) != "" {
			parts++
		}
		if sent := msg.Header.Get(messages.HeaderAlive); parts > 0 && sent != "" {
			told++
			if sent != fmt.Sprint(parts) || len(msg.Data) == 0 {
				t.Errorf("%s were sent, %d have come: %s", sent, parts, msg.Data)
			}
		}
	}
	h.wrote(till, eventlog.Idle, says("t1", "m1", "hi"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "hi"})
	for msg := next(plain); ; msg = next(plain) {
		if len(msg.Header) > 0 {
			t.Errorf("a plain caller is told %v %s", msg.Header, msg.Data)
		}
		if len(msg.Data) == 0 {
			break
		}
	}
}

// A quiet stream to a caller in another account, who may be gone, ends after a while;
// it can be asked for again.
func TestQuietAcrossAccounts(t *testing.T) {
	h := newHouse(t, nil)
	for _, c := range []struct {
		to   string
		long time.Duration
		more bool
	}{{"_R_.abc.1", 0, true}, {"_R_.abc.2", unseenFor, false}, {"_INBOX.abc", unseenFor, true}} {
		sub, err := h.nc.SubscribeSync(c.to)
		h.ok(err)
		h.ok(h.nc.Flush())
		s := &streaming{g: h.g, agent: till, input: "u1", to: &replying{g: h.g, to: c.to, sent: time.Now().Add(-c.long)}}
		if more := s.quiet(); more != c.more {
			t.Errorf("%s after %v goes on: %v", c.to, c.long, more)
		}
		who := &caller{h: h, sub: sub}
		if !c.more {
			who.hears("error 500 nothing has happened for 5m0s, and whether anybody is still there cannot be seen from another account; the turn goes on: ask again with id \"u1\"", "end")
		}
	}
}
