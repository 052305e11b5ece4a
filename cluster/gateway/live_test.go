package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// nodes opens the endpoints of several nodes in place of the house's own. Agents belong to
// the node that owner names, and the house's log is that of all.
func (h *house) nodes(owner func(messages.Partition) string, ids ...string) (all []*Gateway) {
	h.t.Helper()
	h.g.Close()
	quiet := slog.New(slog.DiscardHandler)
	brokers := make(routedBrokers)
	for _, id := range ids {
		nc, err := nats.Connect(h.nc.ConnectedUrl(), append(h.ways[id], nats.Timeout(time.Minute))...)
		h.ok(err)
		h.t.Cleanup(nc.Close)
		cfg := h.g.Config
		cfg.Conn, cfg.Agents = nc, new(projections.Agents)
		cfg.Nodes = Nodes{Self: id, OwnerOf: owner, Router: routed{owner, brokers}}
		cfg.Broker = NewBroker(nc, cfg.Subjects, cfg.Agents, quiet, func(messages.AgentID, messages.Epoch) {}, cfg.Nodes)
		brokers[id] = cfg.Broker
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

// routed reaches the brokers of all nodes at once.
type routed struct {
	owner   func(messages.Partition) string
	brokers routedBrokers
}

type routedBrokers map[string]*Broker

// Last asks the owner's broker.
func (r routed) Last(_ context.Context, p messages.Partition, agents []messages.AgentID) ([]messages.EventNumber, error) {
	return r.brokers[r.owner(p)].Last(agents), nil
}

// Below hands the delta to the owner's broker.
func (r routed) Below(d actors.Delta) { r.brokers[r.owner(d.Agent.Partition())].Delta(d) }

// held returns how many agents are streamed through this node, and how many live subjects it is
// subscribed to.
func (h *Broker) held() (agents, subscribed int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, is := range h.followed {
		if len(is.subs) > 0 {
			subscribed++
		}
	}
	return len(h.followed), subscribed
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

// barred is the way of a node whose endpoints are opened after that. As a node's own
// connections it keeps nothing while it is broken.
func (h *house) barred(node string) *barred {
	w := &barred{}
	h.ways = map[string][]nats.Option{node: {
		nats.SetCustomDialer(w), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0),
	}}
	return w
}

// An owner's connection is broken while it commits: what it publishes is lost, and other nodes'
// streams learn of it from its answer to their next question.
func TestLostNotice(t *testing.T) {
	h := newHouse(t, nil)
	way := h.barred("n2")
	nodes := h.nodes(at("n2"), "n1", "n2")
	endpoint, owner := nodes[0].Broker, nodes[1].Broker
	f, leave := endpoint.follow(till)
	defer leave()
	way.set(true)
	h.eventually("the connection is broken", func() bool { return owner.conn.Status() == nats.RECONNECTING })
	owner.Committed(actors.Commit{Agent: till, Frame: &messages.Frame{ID: "f", First: 1, Epoch: 1, Events: []messages.Event{accepted("u1", messages.Started, "t1")}}})
	way.set(false)
	var first item
	h.eventually("the stream learns of it", func() bool {
		items, _ := f.take()
		for _, is := range items {
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
	h.eventually("what comes then arrives", func() bool {
		owner.Delta(actors.Delta{Agent: till, Turn: "t", Kind: "text", Text: "hello"})
		items, _ := f.take()
		return slices.ContainsFunc(items, func(is item) bool { return is.delta != nil })
	})
}

// A stream on another node gets the events of a frame that was announced to it, each once and in
// order, also where notices come twice, late, or not at all.
func TestNotices(t *testing.T) {
	h := newHouse(t, nil)
	nodes := h.nodes(at("n2"), "n1", "n2")
	var got []messages.EventNumber
	f, leave := nodes[0].Broker.follow(till)
	defer leave()
	w := &watcher{log: nodes[0].Log, agent: till, feed: f, next: 1, fact: func(f fact) bool { got = append(got, f.n); return true }}
	var items []item
	for i := range 6 {
		turn := messages.TurnID(fmt.Sprint("t", i))
		n := h.wrote(till, messages.PhaseRunning, accepted(fmt.Sprint("u", i), messages.Started, turn), messages.TurnStarted{Turn: turn, Inputs: []string{fmt.Sprint("u", i)}, MaxSteps: 5})
		items = append(items, item{reached: n + 1})
	}
	for _, i := range []int{0, 1, 1, 0, 3, 2, 5} {
		more, err := w.item(h.ctx, items[i])
		h.ok(err)
		if !more {
			t.Fatal("it has ended")
		}
	}
	for i, n := range got {
		if n != messages.EventNumber(i+1) {
			t.Fatalf("events %v", got)
		}
	}
	if len(got) != 12 {
		t.Errorf("events %v", got)
	}
}

// A frame that was published before its notice came is at hand; one that was not, that is large, or that many
// others followed, is read from the log.
func TestFramesAtHand(t *testing.T) {
	h := newHouse(t, nil)
	nodes := h.nodes(at("n2"), "n1", "n2")
	endpoint, owner := nodes[0].Broker, nodes[1].Broker
	endpoint.nodes.Published = func(_ messages.AgentID, m *nats.Msg, id messages.FrameID) *messages.Frame {
		if messages.FrameID(m.Header.Get("id")) != id {
			return nil
		}
		return &messages.Frame{ID: id}
	}
	f, leave := endpoint.follow(till)
	defer leave()
	h.ok(endpoint.conn.Flush())
	publish := func(size int, ids ...string) {
		for _, id := range ids {
			h.ok(owner.conn.PublishMsg(&nats.Msg{Subject: owner.subjects.Log(till), Header: nats.Header{"id": {id}}, Data: make([]byte, size)}))
		}
	}
	last := messages.EventNumber(0)
	atHand := func(id string) bool {
		t.Helper()
		last++
		owner.Committed(actors.Commit{Agent: till, Seq: 7, Frame: &messages.Frame{ID: messages.FrameID(id), First: last, Events: []messages.Event{accepted(id, messages.Started, "t1")}}})
		var got item
		h.eventually("the notice arrives", func() bool {
			items, _ := f.take()
			if len(items) > 0 {
				got = items[0]
			}
			return got.reached == last || got.commit != nil
		})
		return got.commit != nil && got.commit.Seq == 7 && got.commit.Frame.ID == messages.FrameID(id)
	}
	publish(10, "a", "refused", "b", "c")
	for _, id := range []string{"a", "b", "c"} {
		if !atHand(id) {
			t.Errorf("frame %s is not at hand", id)
		}
	}
	if kept := len(endpoint.followed[till].offered); kept > 0 {
		t.Errorf("%d frames are kept", kept)
	}
	publish(maxOfferedSize+1, "large")
	if atHand("large") {
		t.Error("a large frame is at hand")
	}
	publish(10, "d", "e", "f", "g", "h")
	for _, id := range []string{"a", "d"} {
		if atHand(id) {
			t.Errorf("frame %s is at hand", id)
		}
	}
	if !atHand("h") {
		t.Error("the newest frame is not at hand")
	}
}

// When a thousand streams through another node have ended, nothing is held of them.
func TestStreamsLeaveNothing(t *testing.T) {
	h := newHouse(t, nil)
	nodes := h.nodes(at("n2"), "n1", "n2")
	endpoint, owner := nodes[0].Broker, nodes[1].Broker
	const streams = 1000
	feeds, leaves := make([]*feed, streams), make([]func(), streams)
	for i := range streams {
		feeds[i], leaves[i] = endpoint.follow(numbered(i))
	}
	h.ok(endpoint.conn.Flush())
	for i := range streams {
		owner.Delta(actors.Delta{Agent: numbered(i), Turn: "t", Kind: "text", Text: "hello"})
	}
	for i, f := range feeds {
		h.eventually(fmt.Sprintf("a delta of agent %d arrives", i), func() bool {
			items, _ := f.take()
			return slices.ContainsFunc(items, func(it item) bool { return it.delta != nil })
		})
	}
	for _, leave := range leaves {
		leave()
	}
	if agents, subscribed := endpoint.held(); agents != 0 || subscribed != 0 {
		t.Errorf("%d agents and %d subscriptions are left", agents, subscribed)
	}
}

// A partition that comes to this node is streamed without NATS from then on, and one that
// leaves it by NATS: nothing comes twice.
func TestStreamsFollowTheOwner(t *testing.T) {
	h := newHouse(t, nil)
	var here atomic.Bool
	nodes := h.nodes(func(messages.Partition) string {
		if here.Load() {
			return "n1"
		}
		return "n2"
	}, "n1", "n2")
	endpoint, other := nodes[0].Broker, nodes[1].Broker
	f, leave := endpoint.follow(till)
	defer leave()
	said := func(by *Broker, text string) {
		t.Helper()
		h.ok(endpoint.conn.Flush())
		for _, piece := range []string{text, "end"} {
			by.Delta(actors.Delta{Agent: till, Turn: "t", Kind: "text", Text: piece})
		}
		h.ok(by.conn.Flush())
		var got []string
		h.eventually(text+" arrives", func() bool {
			items, _ := f.take()
			for _, it := range items {
				if it.delta != nil {
					got = append(got, it.delta.Text)
				}
			}
			return slices.Contains(got, "end")
		})
		if !slices.Equal(got, []string{text, "end"}) {
			t.Errorf("%q", got)
		}
	}
	said(other, "from there")
	here.Store(true)
	endpoint.Moved(till.Partition())
	if items, _ := f.take(); len(items) != 1 || items[0].reached != everything {
		t.Errorf("%+v", items)
	}
	said(endpoint, "from here")
	here.Store(false)
	endpoint.Moved(till.Partition())
	said(other, "from there again")
}

// What an agent below says reaches the streams of the one above it, also where the endpoint,
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
	}, "endpoint", "parents", "childs")
	f, leave := nodes[0].Broker.follow(till)
	defer leave()
	h.ok(nodes[0].Conn.Flush())
	nodes[2].Broker.Delta(actors.Delta{Agent: child, Turn: "below", Call: "m", Kind: "text", Text: "hello", Above: []messages.Caller{{Agent: till.Full(), Turn: "t", Call: "c"}}})
	var got actors.Delta
	h.eventually("the delta arrives", func() bool {
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

// The pages of a view may be asked of different nodes: they say the same.
func TestPagesOfTwoNodes(t *testing.T) {
	h := newHouse(t, nil)
	h.lived()
	want := h.view("history")
	h.nodes(at("n1"), "n1", "n2")
	if got := h.view("history"); len(got) <= defaultLimit || !slices.Equal(got, want) {
		t.Errorf("%d lines of two nodes, %d of one", len(got), len(want))
	}
}

// The end of a reply is lost with its connection: a caller whose messages are numbered, to which no
// later number shows that, receives the count when the connection is back.
func TestTheEndIsLost(t *testing.T) {
	h := newHouse(t, nil)
	way := h.barred("n1")
	g := h.nodes(at("n1"), "n1")[0]
	h.g = g
	sub, err := h.nc.SubscribeSync(h.nc.NewInbox())
	h.ok(err)
	h.ok(h.nc.PublishMsg(&nats.Msg{Subject: messages.Prompt(till), Reply: sub.Subject, Header: nats.Header{messages.HeaderAlive: {"1"}}, Data: []byte(`{"prompt":"hello","reprise":{"id":"u1"}}`)}))
	d := h.next()
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t1"), messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}, MaxSteps: 5}, asks("t1", "m1", "u1"))
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
	h.wrote(till, messages.PhaseIdle, says("t1", "m1", "hi"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "hi"})
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

// A caller that asks for signs of life gets one soon, with how much was sent; its messages are
// numbered. Others get nothing that the agent protocol does not have.
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
	attentive := listen(nats.Header{messages.HeaderAlive: {"1"}}, `{"prompt":"hello","reprise":{"id":"u1"}}`)
	d := h.next()
	if msg := next(attentive); msg.Header.Get(messages.HeaderAlive) != "0" || len(msg.Data) > 0 || msg.Header.Get(messages.HeaderPart) != "" {
		t.Errorf("first came %v %s", msg.Header, msg.Data)
	}
	plain := listen(nil, `{"prompt":"hello","reprise":{"id":"u1"}}`)
	n := h.wrote(till, messages.PhaseRunning, accepted("u1", messages.Started, "t1"), messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}, MaxSteps: 5}, asks("t1", "m1", "u1"))
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
	h.wrote(till, messages.PhaseIdle, says("t1", "m1", "hi"), messages.TurnCompleted{Turn: "t1", Inputs: []string{"u1"}, Output: "hi"})
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
		s := &stream{g: h.g, agent: till, input: "u1", reply: &reply{g: h.g, to: c.to, sent: time.Now().Add(-c.long)}}
		if more := s.idle(); more != c.more {
			t.Errorf("%s after %v continues: %v", c.to, c.long, more)
		}
		who := &caller{h: h, sub: sub}
		if !c.more {
			who.hears("error 500 nothing has happened for 5m0s, and this node cannot see callers in another account; the turn continues: ask again with id \"u1\"", "end")
		}
	}
}
