package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// pair starts two nodes on one server, the second one with options of its own.
func pair(t *testing.T, second ...nats.Option) (nodes [2]*Node) {
	t.Helper()
	embeddedtest.Long(t, "several nodes")
	quiet := slog.New(slog.DiscardHandler)
	srv, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Sync: embedded.SyncRelaxed, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Shutdown() })
	for i := range nodes {
		model := scripted.Func(func(providers.Request) scripted.Step { return scripted.Say("ok") })
		cfg := Config{
			NATS: srv.ClientURL(), NATSOptions: []nats.Option{nats.Timeout(time.Minute)}, Logger: quiet, Providers: providers.Set{"test": model},
			Agents: []actors.Definition{{Kind: "assistant", Model: "test/model"}},
		}
		if i == 1 {
			cfg.NATSOptions = append(cfg.NATSOptions, second...)
		}
		nodes[i], err = Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nodes[i].Close() })
	}
	return nodes
}

func hail(a messages.AgentID, id string) *actors.Deliver {
	return &actors.Deliver{Agent: a, Command: messages.Input{ID: id, Content: messages.TextContent("hello")}, Cause: messages.Cause{Type: "input", ID: id}}
}

// eventually tries until it works: the nodes of a pair take their partitions and learn
// of one another while a test already runs.
func eventually(ctx context.Context, t *testing.T, try func() error) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

// A node brings an input that it read before it was frozen for minutes. The agent was deleted
// meanwhile: its owner refuses the input, here or on another node, and it is taken when it is
// asked again.
func TestThawedNodeCreatesNoAgent(t *testing.T) { // A108
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nodes := pair(t)
	thawed := nodes[1].host.router
	say := func(a messages.AgentID) (messages.Answer, error) {
		answer, err := thawed.deliver(hail(a, "1"))(ctx)
		if err == nil && answer.Err != nil {
			err = answer.Err
		}
		return answer, err
	}
	seen := thawed.there
	owned := func(n *Node) (a messages.AgentID) {
		eventually(ctx, t, func() error {
			for i := range 100 {
				a = messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprintf("k%d", i)}
				if owner, _ := nodes[1].place(a.Partition()); owner == n.ID() {
					return nil
				}
			}
			return errors.New("it owns nothing yet")
		})
		return a
	}
	for _, n := range nodes {
		a := owned(n)
		if _, err := say(a); err != nil {
			t.Fatal(err)
		}
		if _, err := nodes[0].Client().Do(ctx, a.Full(), messages.Delete{}); err != nil {
			t.Fatal(err)
		}
		steady := thawed.steady
		thawed.there = func() time.Time { return time.Now().Add(-routeFor / 2) }
		thawed.steady = func(time.Time) (bool, bool) { return false, true }
		if answer, err := say(a); messages.AsError(err) == nil || messages.AsError(err).Code != messages.Unavailable || !strings.Contains(err.Error(), "was deleted") {
			t.Errorf("the input of before is answered %+v, %v", answer, err)
		}
		thawed.steady = steady
		thawed.there = func() time.Time { return time.Now().Add(-2 * routeFor) }
		if answer, err := say(a); messages.AsError(err) == nil || messages.AsError(err).Code != messages.Unavailable || !strings.Contains(err.Error(), "ask again with the same id") {
			t.Errorf("the input of before is answered %+v, %v", answer, err)
		}
		thawed.there = seen
		if answer, err := say(a); err != nil || answer.Duplicate {
			t.Errorf("asked again it is answered %+v, %v", answer, err)
		}
	}
}

// forgetful is the way to a server. What comes after a call of lose is lost, until breaks is called.
type forgetful struct {
	mu    sync.Mutex
	conns []net.Conn
	lost  []byte        // what marks the end of what is lost; nil: nothing is
	gone  chan struct{} // closed when that came
}

// forgets is a connection on that way.
type forgets struct {
	net.Conn
	way  *forgetful
	lost []byte
}

// Dial makes one.
func (w *forgetful) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return &forgets{Conn: c, way: w}, nil
}

// Read returns what comes, or loses it.
func (c *forgets) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.loses(b[:n]) {
			return n, err
		}
	}
}

func (c *forgets) loses(b []byte) bool {
	c.way.mu.Lock()
	defer c.way.mu.Unlock()
	if c.way.lost == nil {
		return false
	}
	c.lost = append(c.lost, b...)
	if bytes.Contains(c.lost, c.way.lost) {
		close(c.way.gone)
		c.way.lost = []byte("nothing more")
	}
	return true
}

// lose loses all that comes. gone is closed when until has come.
func (w *forgetful) lose(until string) (gone <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost, w.gone = []byte(until), make(chan struct{})
	return w.gone
}

// breaks ends all connections; new ones lose nothing.
func (w *forgetful) breaks() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns, w.lost = nil, nil
}

// The owner's connection breaks with a command on its way there, and is back before the
// next one comes to another node's endpoint.
func TestOrderHoldsOverTheOwnersConnection(t *testing.T) { // A7
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	way := &forgetful{}
	nodes := pair(t, nats.SetCustomDialer(way), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
	endpoint, owner := nodes[0], nodes[1]
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for endpoint.Partitions() != messages.Partitions/2 || owner.Partitions() != messages.Partitions/2 {
		<-ticker.C
	}
	var a messages.AgentID
	for i := 0; a.Key == "" || endpoint.ownerOf(a.Partition()) != owner.ID(); i++ {
		a = messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}
	}
	type result struct {
		answer messages.Answer
		err    error
	}
	ask := func(id string) <-chan result {
		wait, c := endpoint.host.router.deliver(hail(a, id)), make(chan result, 1)
		go func() {
			answer, err := wait(ctx)
			c <- result{answer, err}
		}()
		return c
	}
	if r := <-ask("before"); r.err != nil {
		t.Fatal(r.err)
	}
	connected := owner.nc.StatusChanged(nats.CONNECTED)
	gone := way.lose("the first of two")
	first := ask("the first of two")
	<-gone
	way.breaks()
	<-connected
	if err := owner.nc.FlushWithContext(ctx); err != nil { // the server knows what it listens to
		t.Fatal(err)
	}
	second := ask("the second of two")
	one, two := <-first, <-second
	if one.err != nil || two.err != nil || one.answer.N >= two.answer.N {
		t.Errorf("the first is event %d (%v), the second %d (%v)", one.answer.N, one.err, two.answer.N, two.err)
	}
}

// What an owner asks of its own agents goes to no other node.
func TestOwnersAskAtHome(t *testing.T) {
	nodes := pair(t)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for nodes[0].Partitions() == 0 || nodes[1].Partitions() == 0 {
		<-ticker.C
	}
	var a messages.AgentID
	for i := 0; a.Key == "" || nodes[0].ownerOf(a.Partition()) != nodes[1].ID(); i++ {
		a = messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}
	}
	for _, m := range []any{&actors.Activate{Agent: a}, hail(a, "1")} {
		if answer, err := nodes[0].host.ask(t.Context(), a, m); err == nil || messages.AsError(err).Code != messages.Unavailable {
			t.Errorf("%T: %+v, %v", m, answer, err)
		}
	}
	if got := nodes[0].owner.wake(t.Context(), &actors.Activate{Agent: a}); got != notNow {
		t.Errorf("waking it comes to %d", got)
	}
	for { // its lease is written before it is hosted
		answer, err := nodes[1].host.ask(t.Context(), a, hail(a, "1"))
		if err == nil && !answer.Duplicate {
			return
		}
		if err == nil || messages.AsError(err).Code != messages.Unavailable {
			t.Fatalf("at home: %+v, %v", answer, err)
		}
		<-ticker.C
	}
}

// ownedBy waits until a node owns an agent, and returns one that it owns.
func ownedBy(ctx context.Context, t *testing.T, n *Node) (a messages.AgentID) {
	t.Helper()
	eventually(ctx, t, func() error {
		for i := range 100 {
			a = messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}
			if n.owner.epoch(a.Partition()) != 0 {
				return nil
			}
		}
		return errors.New("it owns nothing yet")
	})
	return a
}

// A command that no node acknowledges is sent again, and one that was acknowledged and not
// answered, too: by owners that died, or are frozen.
func TestSentAgain(t *testing.T) { // A3
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	n := pair(t)[0]
	a := ownedBy(ctx, t, n)
	h := newHost(n.nc, messages.Subjects{Root: "other"}, slog.New(slog.DiscardHandler)) // where no node listens
	t.Cleanup(h.stop)
	if err := h.router.open(); err != nil {
		t.Fatal(err)
	}
	for name, then := range map[string]func(*nats.Msg){
		"frozen": func(*nats.Msg) {},
		"dies":   func(m *nats.Msg) { h.router.respond(m.Reply, 1, nil) },
		"answers": func(m *nats.Msg) {
			h.router.respond(m.Reply, 1, nil)
			h.router.respond(m.Reply, 2, &messages.Answer{N: 7})
		},
		"deposed": func(m *nats.Msg) {
			h.router.respond(m.Reply, 1, &messages.Answer{N: 6}) // of an earlier owner than has answered
			h.router.respond(m.Reply, 2, &messages.Answer{N: 7})
		},
	} {
		h.router.newest[a.Partition()].Store(0)
		if name == "deposed" {
			h.router.newest[a.Partition()].Store(2)
		}
		wait, answered := h.router.deliver(hail(a, name)), make(chan error, 1)
		go func() {
			answer, err := wait(ctx)
			if err == nil && answer.N != 7 {
				err = fmt.Errorf("event %d", answer.N)
			}
			answered <- err
		}()
		eventually(ctx, t, func() error { // no node owns it yet
			if h.router.repeated.Load() < 2 {
				return errors.New("it was not sent again")
			}
			return nil
		})
		came := make(chan *nats.Msg, 16)
		owner, err := n.nc.ChanSubscribe(h.router.subjects.Owner(a.Partition()), came)
		if err != nil {
			t.Fatal(err)
		}
		if then(<-came); name == "frozen" || name == "dies" {
			m := <-came
			h.router.respond(m.Reply, 2, &messages.Answer{N: 7})
		}
		if err := <-answered; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := owner.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		h.router.repeated.Store(0)
	}
}

// What comes to an owner that is not trusted any more it does not answer; what cannot be read
// it refuses, and what comes after that it answers.
func TestOwnerAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nodes := pair(t)
	a := ownedBy(ctx, t, nodes[0])
	ask := func(m *request) (response, error) {
		b, err := messages.Pack(m)
		if err != nil {
			t.Fatal(err)
		}
		msg, err := nodes[1].nc.RequestWithContext(ctx, nodes[0].subjects.Owner(a.Partition()), b)
		if err != nil {
			return response{}, err
		}
		var res response
		return res, messages.UnpackKnown(msg.Data, &res)
	}
	for name, m := range map[string]*request{
		"agent":      {Command: &routedCommand{Agent: "x"}},
		"command":    {Command: &routedCommand{Agent: a.Full(), Type: "of tomorrow"}},
		"last":       {Last: []string{"x"}},
		"delta":      {Delta: &routedDelta{Agent: "x"}},
		"bad packed": {Command: &routedCommand{Agent: a.Full(), Type: "input", Command: []byte{0xc1}}},
	} {
		if res, err := ask(m); err != nil || res.Answer == nil || res.Answer.Err == nil || res.Answer.Err.Code != messages.Unavailable {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	answer, err := nodes[1].host.router.deliver(hail(a, "1"))(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := ask(&request{Last: []string{a.Full()}}); err != nil || len(res.Last) != 1 || res.Last[0] < answer.N {
		t.Errorf("%+v, %v; the answer was %+v", res, err, answer)
	}
}

// newest answers what is asked for the newest events.
type newest messages.EventNumber

func (n newest) Last(agents []messages.AgentID) []messages.EventNumber {
	return slices.Repeat([]messages.EventNumber{messages.EventNumber(n)}, len(agents))
}

func (newest) Delta(actors.Delta) {}

// An owner that is not trusted answers nothing: another node may own the partition.
func TestUntrustedOwnerIsSilent(t *testing.T) {
	nc := connected(t)
	h := newHost(nc, messages.Subjects{}, slog.New(slog.DiscardHandler))
	t.Cleanup(h.stop)
	asked := make(chan bool, 2)
	trusted := []bool{false, true}
	h.router.local, h.router.trusted = newest(7), func() bool {
		is := trusted[0]
		trusted = trusted[1:]
		asked <- is
		return is
	}
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	if err := h.openDamaged(a.Partition(), 1, messages.Refuse(messages.Damaged, "it is damaged")); err != nil {
		t.Fatal(err)
	}
	answers, err := nc.SubscribeSync("answers.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"answers.untrusted", "answers.trusted"} {
		if err := h.router.publish(a.Partition(), to, &request{Last: []string{a.Full()}}); err != nil {
			t.Fatal(err)
		}
		<-asked
	}
	if msg, err := answers.NextMsg(time.Minute); err != nil || msg.Subject != "answers.trusted" {
		t.Errorf("%+v, %v", msg, err)
	}
}

// A partition that is given up is not asked any more by the time that shut returns: its
// endpoint learns at once that it has no owner.
func TestGivenUpIsUnowned(t *testing.T) { // A4
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nodes := pair(t)
	a := ownedBy(ctx, t, nodes[0])
	nodes[0].host.shut(a.Partition())
	_, err := nodes[1].host.router.once(ctx, hail(a, "1"), time.Hour)
	if err == nil || err.Error() != errUnowned(a).Error() {
		t.Errorf("%v", err)
	}
}

// Commands wait for all those before them, also when one between gives up.
func TestOrder(t *testing.T) { // A7
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	var o order
	first, second, third := o.join(a), o.join(a), o.join(a)
	if err := first.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if second.wait(ctx) == nil {
		t.Error("the second does not wait for the first")
	}
	o.leave(a, second)
	if third.wait(ctx) == nil {
		t.Error("the third does not wait for the first")
	}
	o.leave(a, third)
	fourth := o.join(a)
	if fourth.wait(ctx) == nil {
		t.Error("the fourth does not wait for the first")
	}
	o.leave(a, first)
	if err := fourth.wait(t.Context()); err != nil {
		t.Error(err)
	}
	o.leave(a, fourth)
	if len(o.last) != 0 {
		t.Errorf("left: %v", o.last)
	}
}
