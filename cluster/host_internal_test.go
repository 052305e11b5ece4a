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
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/transport"
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

// Commands for one agent are accepted in the order in which they came, also when the
// earlier ones have to be sent again.
func TestOrderHoldsWhileOwnersChange(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	n := pair(t)[0]
	var changed atomic.Bool
	place := func(p messages.Partition) (string, messages.Epoch) {
		if owner, epoch := n.place(p); changed.Load() {
			return owner, epoch
		}
		return n.ID(), 1 // as if its owner were one that is no more
	}
	h := newHost("door", n.cfg.Root, n.doors, place, slog.New(slog.DiscardHandler))
	t.Cleanup(h.stop)
	if err := h.net.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.net.Close)
	var waits []func(context.Context) (messages.Answer, error)
	for i := range 10 {
		if i == 5 {
			changed.Store(true)
		}
		waits = append(waits, h.deliver(hail(a, fmt.Sprintf("%d", i))))
	}
	answers := make(chan string, len(waits))
	got := make([]messages.Answer, len(waits))
	for i, wait := range slices.Backward(waits) {
		go func() {
			var err error
			got[i], err = wait(t.Context())
			answers <- fmt.Sprint(err)
		}()
	}
	for range waits {
		select {
		case err := <-answers:
			if err != "<nil>" {
				t.Error(err)
			}
		case <-time.After(3 * time.Minute):
			t.Fatal("no answer")
		}
	}
	for i := 1; i < len(got); i++ {
		if got[i].N <= got[i-1].N {
			t.Errorf("input %d is event %d, the one before it %d", i, got[i].N, got[i-1].N)
		}
	}
}

// A command waits unsent for one that is on its way to another node, also when the owner
// changes in the very moment: that one may be lost.
func TestOrderHoldsInTheMomentOfChange(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	n := pair(t)[0]
	var looks atomic.Int32
	const noEpoch = 0 // no lease has it
	place := func(p messages.Partition) (string, messages.Epoch) {
		if looks.Add(1) == 1 {
			return n.ID(), noEpoch // an owner that is no more
		}
		return n.place(p)
	}
	h := newHost("door", n.cfg.Root, n.doors, place, slog.New(slog.DiscardHandler))
	t.Cleanup(h.stop)
	if err := h.net.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.net.Close)
	first, now := h.asking.begin(a, transport.PID(n.ID(), partitionName(a.Partition(), noEpoch)), false)
	if !now {
		t.Fatal("the first must wait")
	}
	wait := h.deliver(hail(a, "1"))
	if second := h.asking.lines[a][1]; second.at != nil {
		t.Errorf("it is sent to %v, and the one before it is not answered", second.at)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := wait(t.Context())
		answered <- err
	}()
	h.asking.end(a, first)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A node brings an input that it read before it was frozen for minutes. The agent was deleted
// meanwhile: its owner refuses the input, here or on another node, and it is taken when it is
// asked again.
func TestThawedNodeCreatesNoAgent(t *testing.T) { // A108
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nodes := pair(t)
	thawed := nodes[1].host
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
				if owner, _ := thawed.place(a.Partition()); owner == n.ID() {
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
		thawed.there = func() time.Time { return time.Now().Add(-askedFor / 2) }
		thawed.steady = func(time.Time) (bool, bool) { return false, true }
		if answer, err := say(a); messages.AsError(err) == nil || messages.AsError(err).Code != messages.Unavailable || !strings.Contains(err.Error(), "was deleted") {
			t.Errorf("the input of before is answered %+v, %v", answer, err)
		}
		thawed.steady = steady
		thawed.there = func() time.Time { return time.Now().Add(-2 * askedFor) }
		if answer, err := say(a); messages.AsError(err) == nil || messages.AsError(err).Code != messages.Unavailable || !strings.Contains(err.Error(), "ask again with the same id") {
			t.Errorf("the input of before is answered %+v, %v", answer, err)
		}
		thawed.there = seen
		if answer, err := say(a); err != nil || answer.Duplicate {
			t.Errorf("asked again it is answered %+v, %v", answer, err)
		}
	}
}

// forgetful is the way to a server on which what comes is lost while it is told so.
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

// Read gives what comes, or loses it.
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

// lose loses all that comes until what is given has come, of which it tells.
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
// next one comes to another node's door.
func TestOrderHoldsOverTheOwnersConnection(t *testing.T) { // A7
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	way := &forgetful{}
	nodes := pair(t, nats.SetCustomDialer(way), nats.ReconnectWait(time.Millisecond), nats.ReconnectJitter(0, 0))
	door, owner := nodes[0], nodes[1]
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for door.Partitions() != messages.Partitions/2 || owner.Partitions() != messages.Partitions/2 {
		<-ticker.C
	}
	var a messages.AgentID
	for i := 0; a.Key == "" || door.ownerOf(a.Partition()) != owner.ID(); i++ {
		a = messages.AgentID{Tenant: "default", Kind: "assistant", Key: fmt.Sprint("k", i)}
	}
	type result struct {
		answer messages.Answer
		err    error
	}
	ask := func(id string) <-chan result {
		wait, c := door.host.deliver(hail(a, id)), make(chan result, 1)
		go func() {
			answer, err := wait(ctx)
			c <- result{answer, err}
		}()
		return c
	}
	if r := <-ask("before"); r.err != nil {
		t.Fatal(r.err)
	}
	connected := owner.doors.StatusChanged(nats.CONNECTED)
	gone := way.lose("the first of two")
	first := ask("the first of two")
	<-gone
	way.breaks()
	<-connected
	if err := owner.doors.FlushWithContext(ctx); err != nil { // the server knows what it listens to
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
	r := &retention{node: nodes[0]}
	for _, m := range []any{&actors.Activate{Agent: a}, hail(a, "1")} {
		if answer, err := r.ask(t.Context(), a, m); err == nil || messages.AsError(err).Code != messages.Unavailable {
			t.Errorf("%T: %+v, %v", m, answer, err)
		}
	}
	if got := nodes[0].owner.wake(t.Context(), &actors.Activate{Agent: a}); got != notNow {
		t.Errorf("waking it comes to %d", got)
	}
	for { // its lease is written before it is hosted
		answer, err := nodes[1].host.askHere(a, hail(a, "1"))(t.Context())
		if err == nil && !answer.Duplicate {
			return
		}
		if err == nil || messages.AsError(err).Code != messages.Unavailable {
			t.Fatalf("at home: %+v, %v", answer, err)
		}
		<-ticker.C
	}
}

// A command that waits for another node's answer is sent again as soon as the connection
// is made anew, not only when the node has been silent for long.
func TestAskedAgainOnceReconnected(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	n := pair(t)[0]
	came := make(chan struct{}, 10)
	_, err := n.doors.Subscribe("_actor."+n.cfg.Root+".to.mute", func(*nats.Msg) { came <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	place := func(messages.Partition) (string, messages.Epoch) { return "mute", 1 }
	h := newHost("door", n.cfg.Root, n.doors, place, slog.New(slog.DiscardHandler))
	t.Cleanup(h.stop)
	h.start()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	mute := transport.PID("mute", partitionName(a.Partition(), 1))
	mine, now := h.asking.begin(a, mute, false)
	if !now {
		t.Fatal("it waits for others")
	}
	broken := make(chan error, 1)
	go func() {
		_, err := h.attempt(ctx, mine, h.sendTo(mute, make(chan struct{}), a, hail(a, "1")), time.Hour)
		broken <- err
	}()
	<-came
	for { // the attempt may begin a moment later
		if err := n.doors.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-broken:
			if messages.AsError(err).Code != messages.Unavailable || ctx.Err() != nil {
				t.Errorf("%v", err)
			}
			return
		case <-came:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// One that has given up in the middle lets nobody behind it overtake those before it.
func TestWhoGivesUpLeavesTheLineInOrder(t *testing.T) {
	a := messages.AgentID{Tenant: "default", Kind: "assistant", Key: "a"}
	at, elsewhere := transport.PID("n1", "partition"), transport.PID("n2", "partition")
	var q asking
	first, now := q.begin(a, at, true)
	if !now {
		t.Fatal("the first must wait")
	}
	second, now := q.begin(a, at, true)
	if !now {
		t.Fatal("the second must wait, though it goes the same way")
	}
	q.failed(first)
	third, now := q.begin(a, at, true)
	if now {
		t.Fatal("the third overtakes the first")
	}
	q.end(a, second)
	fourth, now := q.begin(a, elsewhere, false)
	if now {
		t.Fatal("the fourth overtakes the first")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, waits := range []*asked{third, fourth} {
		if q.turn(ctx, a, waits) == nil {
			t.Error("it is its turn before the first is settled")
		}
	}
	q.end(a, first)
	if err := q.turn(t.Context(), a, third); err != nil {
		t.Error(err)
	}
	q.end(a, third)
	if err := q.turn(t.Context(), a, fourth); err != nil {
		t.Error(err)
	}
	q.end(a, fourth)
	if len(q.lines) != 0 {
		t.Errorf("left: %v", q.lines)
	}
}
