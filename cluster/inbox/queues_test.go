package inbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// neighbours are agents of one partition.
func neighbours(n int) []messages.AgentID {
	var list []messages.AgentID
	for i := 0; len(list) < n; i++ {
		if of := (messages.AgentID{Tenant: "default", Kind: "support", Key: fmt.Sprintf("n%d", i)}); of.Partition() == a.Partition() {
			list = append(list, of)
		}
	}
	return list
}

func (at installation) publish(t *testing.T, to messages.AgentID, bodies ...string) {
	t.Helper()
	var subjects messages.Subjects
	var last jetstream.PubAckFuture
	for _, body := range bodies {
		ack, err := at.js.PublishAsync(subjects.In(to), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		last = ack
	}
	select {
	case <-last.Ok():
	case err := <-last.Err():
		t.Fatal(err)
	case <-at.ctx.Done():
		t.Fatal("not stored")
	}
}

// stats waits until the partition's are as wanted.
func (at installation) stats(t *testing.T, b *Inbox, wanted func(Stats) bool) Stats {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		s := b.Stats()[a.Partition()]
		if wanted(s) {
			return s
		}
		select {
		case <-ticker.C:
		case <-at.ctx.Done():
			t.Fatalf("it did not come to that: %+v", s)
		}
	}
}

// numbered are bodies that contain their number, each of a size.
func numbered(n, size int) []string {
	pad := fmt.Sprintf("%0*d", size, 0)
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"%d","content":"%s"}`, i, pad)
	}
	return list
}

// heard collects what an agent was given, in order.
type heard struct {
	mu  sync.Mutex
	ids []string
}

func (h *heard) add(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids = append(h.ids, id)
}

// noting opens an inbox whose agents note what they are given, and accept it.
func (at installation) noting(t *testing.T, got *heard) *Inbox {
	t.Helper()
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			got.add(messages.IDOf(d.Command))
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inOrder checks that each of n came, and none before one in front of it; what
// came twice is fine where again says so.
func (h *heard) inOrder(t *testing.T, n int, again bool) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	highest := -1
	for _, id := range h.ids {
		var i int
		if _, err := fmt.Sscan(id, &i); err != nil {
			t.Fatal(err)
		}
		if i > highest+1 || i <= highest && !again {
			t.Fatalf("%d came after %d", i, highest)
		}
		highest = max(highest, i)
	}
	if highest != n-1 {
		t.Errorf("%d of %d came", highest+1, n)
	}
}

// A thousand agents have work and none takes it: 64 goroutines wait with them. What the server
// sends again meanwhile is there already, so each is given its input once.
func TestWaitingAgentsTakeNoGoroutine(t *testing.T) {
	at := install(t)
	open := make(chan struct{})
	var given atomic.Int32
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(context.Context, *actors.Deliver) (messages.Answer, error) {
			given.Add(1)
			<-open
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := b.queues(at.ctx, &b.parts[a.Partition()], source{stream: b.stream})
	agents, before := neighbours(1000), runtime.NumGoroutine()
	for range 2 {
		for i, of := range agents {
			subject := fmt.Sprintf("reprise.inq.%s.in.%s.%s.%s", of.Partition(), of.Tenant, of.Kind, of.Key)
			l.take(&message{place: place{seq: uint64(i + 1), stored: time.Now(), settle: "nowhere"}, subject: subject, data: []byte("hello")})
		}
	}
	if more := runtime.NumGoroutine() - before; more > givenAtOnce+10 || l.inHand() != len(agents) {
		t.Errorf("%d goroutines for %d agents, %d in hand", more, len(agents), l.inHand())
	}
	close(open)
	for l.inHand() > 0 && at.ctx.Err() == nil {
		runtime.Gosched()
	}
	l.end()
	if n := given.Load(); int(n) != len(agents) {
		t.Errorf("%d were given, want %d", n, len(agents))
	}
}

// A command carries when it came to this node, which is not when its turn in the lane
// came: what it is about may have ended since.
func TestCommandsSayWhenTheyCame(t *testing.T) {
	at := install(t)
	came, ready := make(chan time.Time, 2), make(chan struct{})
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			<-ready
			came <- d.Received
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Pull(a.Partition(), 1)()
	at.publish(t, a, "1", "2")
	at.stats(t, b, func(s Stats) bool { return s.InHand == 2 && s.Waiting == 1 })
	both := time.Now()
	close(ready)
	if first, second := next(at.ctx, t, came), next(at.ctx, t, came); first.IsZero() || second.Before(first) || second.After(both) {
		t.Errorf("they came at %v and %v, both were there at %v", first, second, both)
	}
}

// An agent that takes nothing has more inputs than fit into memory, and more than
// its partition was given at once before. Its neighbour is answered all the same;
// then they come, in order and once.
func TestFloodStallsNobody(t *testing.T) { // A7
	at := install(t)
	open, neighbour := make(chan struct{}), neighbours(1)[0]
	var got heard
	answered := make(chan struct{}, 1)
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(ctx context.Context, d *actors.Deliver) (messages.Answer, error) {
			if d.Agent == neighbour {
				answered <- struct{}{}
				return messages.Answer{N: 1}, nil
			}
			select {
			case <-open:
			case <-ctx.Done():
				return messages.Answer{}, ctx.Err()
			}
			got.add(messages.IDOf(d.Command))
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Pull(a.Partition(), 1)()
	const n, size = 3000, 8000
	at.publish(t, a, numbered(n, size)...)
	at.publish(t, neighbour, "hello")
	next(at.ctx, t, answered)
	at.stats(t, b, func(s Stats) bool { return s.InHand == n && s.Waiting == n-1 && !s.Oldest.IsZero() && s.Epoch == 1 })
	l := b.parts[a.Partition()].queues.Load()
	l.mu.Lock()
	if l.kept > keptBytes || l.kept < keptBytes/2 || l.giving != 1 {
		t.Errorf("%d bytes are kept, %d are at work", l.kept, l.giving)
	}
	l.mu.Unlock()
	close(open)
	s := at.stats(t, b, func(s Stats) bool { return s.InHand == 0 && s.Applied > n })
	once := s.Lost == 0 // on a machine that stalls the consumer may be lost
	if once && s.Applied != n+1 || s.Again != 0 || s.DeadLetters != 0 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
	got.inOrder(t, n, !once)
}

// Thousands of agents that cannot take their task now leave their neighbours
// alone.
func TestHeldTasksStallNobody(t *testing.T) {
	at := install(t)
	agents := neighbours(3001)
	neighbour := agents[3000]
	var known atomic.Bool
	answered := make(chan struct{}, 1)
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet, Serves: func(string) bool { return known.Load() }, KnownElsewhere: func(string) bool { return true },
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			if d.Agent == neighbour {
				answered <- struct{}{}
			} else if !known.Load() {
				return messages.Answer{Err: messages.Refuse(messages.UnknownKind, "not here")}, nil
			}
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := b.Pull(a.Partition(), 1)
	for _, of := range agents[:3000] {
		at.publish(t, of, "hello")
	}
	at.publish(t, neighbour, "hello")
	next(at.ctx, t, answered)
	at.stats(t, b, func(s Stats) bool { return s.Held == 3000 && s.Waiting == 3000 && s.InHand == 3000 })
	stop()
	known.Store(true) // as on the node that comes next
	defer b.Pull(a.Partition(), 2)()
	if s := at.stats(t, b, func(s Stats) bool { return s.Applied >= 3001 && s.InHand == 0 }); s.DeadLetters != 0 {
		t.Errorf("%+v", s)
	}
}

// An input that its agent fails at each time is a dead letter in the end, with the
// reason; those behind it are applied.
func TestPoison(t *testing.T) { // A102
	at := install(t)
	var tries atomic.Int32
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			if messages.IDOf(d.Command) == "0" {
				tries.Add(1)
				return messages.Answer{Err: messages.Refuse(messages.Internal, "it failed inside: too bad")}, nil
			}
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.failures = 3
	defer b.Pull(a.Partition(), 1)()
	bodies := numbered(2, 1)
	at.publish(t, a, bodies...)
	checkLetter(at.ctx, t, at.js, at.log.Names().DeadLetters(), bodies[0], messages.Refuse(messages.Internal, "failed at this 3 times, the last time so: it failed inside: too bad"))
	s := at.stats(t, b, func(s Stats) bool { return s.Applied == 1 && s.DeadLetters == 1 && s.InHand == 0 })
	if n := tries.Load(); n < 3 || n > 3 && s.Lost == 0 {
		t.Errorf("tried %d times", n)
	}
}

// What keeps an input from its agent, whatever it is, is no failure of the agent: the
// input is given again until it comes.
func TestInputsThatDoNotReachTheirAgent(t *testing.T) { // A102
	at := install(t)
	var tries atomic.Int32
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(context.Context, *actors.Deliver) (messages.Answer, error) {
			if tries.Add(1) <= 3 {
				return messages.Answer{}, errors.New("no line to it")
			}
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.failures = 2
	defer b.Pull(a.Partition(), 1)()
	at.publish(t, a, "hello")
	if s := at.stats(t, b, func(s Stats) bool { return s.Applied == 1 && s.InHand == 0 }); s.DeadLetters != 0 {
		t.Errorf("%+v", s)
	}
}

// The time between an agent's first failure and its last is a minute or more.
func TestPatience(t *testing.T) {
	var whole time.Duration
	var tr trial
	for range failuresAtMost - 1 {
		whole += tr.pause(true)
	}
	if whole < time.Minute || whole > 2*time.Minute {
		t.Errorf("it is tried for %v", whole)
	}
}

// What was held for a kind that no node knows any more is a dead letter then.
func TestHeldUntilNobodyKnows(t *testing.T) { // A102
	at := install(t)
	var elsewhere atomic.Bool
	elsewhere.Store(true)
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet, Serves: func(string) bool { return false }, KnownElsewhere: func(string) bool { return elsewhere.Load() },
		Deliver: func(context.Context, *actors.Deliver) (messages.Answer, error) {
			return messages.Answer{Err: messages.Refuse(messages.UnknownKind, "no kind of that name")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Pull(a.Partition(), 1)()
	at.publish(t, a, "hello")
	at.stats(t, b, func(s Stats) bool { return s.Held == 1 })
	elsewhere.Store(false)
	checkLetter(at.ctx, t, at.js, at.log.Names().DeadLetters(), "hello", messages.Refuse(messages.UnknownKind, "no kind of that name"))
}

// The server ends and starts again, with its consumers gone, while inputs come and
// are applied: they continue, in order, and none is left out.
func TestOrderOverARestart(t *testing.T) { // A30
	at, srv := installed(t, embedded.Config{DontListen: true})
	var got heard
	half, again := make(chan struct{}), make(chan struct{})
	const n = 600
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			got.add(messages.IDOf(d.Command))
			if messages.IDOf(d.Command) == "300" {
				select {
				case <-again:
				default:
					close(half)
					<-again
				}
			}
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Pull(a.Partition(), 1)()
	at.publish(t, a, numbered(n, 10)...)
	next(at.ctx, t, half)
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	close(again)
	at.stats(t, b, func(s Stats) bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		return len(got.ids) > 0 && got.ids[len(got.ids)-1] == fmt.Sprint(n-1) && s.InHand == 0 && s.Lost > 0
	})
	got.inOrder(t, n, true)
}

// A message that was delivered did not arrive, as over a connection that breaks:
// those behind it wait until it has come again.
func TestOrderWhenADeliveryIsLost(t *testing.T) { // A30
	at := install(t)
	var got heard
	b := at.noting(t, &got)
	defer b.Pull(a.Partition(), 1)()
	bodies := numbered(50, 10)
	at.publish(t, a, bodies[:2]...)
	at.stats(t, b, func(s Stats) bool { return s.Applied == 2 })
	elsewhere, err := at.js.Consumer(at.ctx, at.log.Names().Inbox(), consumerOf(a.Partition(), 1))
	if err != nil {
		t.Fatal(err)
	}
	lost, err := elsewhere.Fetch(1)
	if err != nil {
		t.Fatal(err)
	}
	for waiting := 0; waiting < 2; { // until the server knows of both who ask
		info, err := elsewhere.Info(at.ctx)
		if err != nil {
			t.Fatal(err)
		}
		waiting = info.NumWaiting
	}
	at.publish(t, a, bodies[2:]...)
	if msg := next(at.ctx, t, lost.Messages()); msg == nil {
		t.Fatalf("nothing was lost: %v", lost.Error())
	}
	if s := at.stats(t, b, func(s Stats) bool { return s.Applied >= 50 && s.InHand == 0 }); s.Lost == 0 {
		t.Errorf("%+v", s)
	}
	got.inOrder(t, 50, true)
}

// lossy is the way to a server on which what is sent, or what comes, may get lost.
type lossy struct{ sends, brings atomic.Bool }

type lossyConn struct {
	net.Conn
	way *lossy
}

// Dial makes a connection.
func (l *lossy) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &lossyConn{c, l}, err
}

// Write sends b, or loses it.
func (c *lossyConn) Write(b []byte) (int, error) {
	if c.way.sends.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read reads what is not lost.
func (c *lossyConn) Read(b []byte) (n int, err error) {
	n, err = c.Conn.Read(b)
	for err == nil && c.way.brings.Load() {
		n, err = c.Conn.Read(b)
	}
	return n, err
}

// The connection breaks, and with it goes an acknowledgement, or the newest message: it comes
// again, and is settled.
func TestLostWithTheConnection(t *testing.T) { // A30
	at, srv := installed(t, embedded.Config{})
	way := &lossy{}
	nc, err := nats.Connect(srv.ClientURL(), nats.Timeout(time.Minute), nats.SetCustomDialer(way), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	const n = 20
	var lost atomic.Bool
	b, err := Open(at.ctx, Config{
		Conn: nc, Logger: quiet,
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			if messages.IDOf(d.Command) == fmt.Sprint(n-1) && !lost.Swap(true) {
				way.sends.Store(true)
			}
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Pull(a.Partition(), 1)()
	reconnect := func(applied uint64) Stats { // more than as many are applied then
		t.Helper()
		way.sends.Store(false)
		way.brings.Store(false)
		if err := nc.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		return at.stats(t, b, func(s Stats) bool {
			left, err := b.Backlogs(at.ctx)
			return err == nil && left[a.Partition()].Waiting == 0 && s.Applied > applied
		})
	}
	at.publish(t, a, numbered(n, 10)...)
	at.stats(t, b, func(s Stats) bool {
		left, err := nc.Buffered()
		return err == nil && left == 0 && s.Applied >= n && s.InHand == 0
	})
	s := reconnect(n)
	consumer, err := at.js.Consumer(at.ctx, at.log.Names().Inbox(), consumerOf(a.Partition(), 1))
	if err != nil {
		t.Fatal(err)
	}
	way.brings.Store(true)
	at.publish(t, a, `{"id":"next","content":"hello"}`)
	for given := 0; given == 0; {
		info, err := consumer.Info(at.ctx)
		if err != nil {
			t.Fatal(err)
		}
		given = info.NumAckPending
	}
	reconnect(s.Applied)
}

// A delete settles what was published before it to any of the agent's queues, and that alone.
func TestWhatADeleteSettles(t *testing.T) { // A108
	at := install(t)
	var known atomic.Bool
	var given heard
	b, err := Open(at.ctx, Config{
		Conn: at.conn, Logger: quiet, Serves: func(string) bool { return known.Load() }, KnownElsewhere: func(string) bool { return true },
		Deliver: func(_ context.Context, d *actors.Deliver) (messages.Answer, error) {
			if _, is := d.Command.(messages.Delete); !is && !known.Load() {
				return messages.Answer{Err: messages.Refuse(messages.UnknownKind, "not here")}, nil
			}
			given.add(messages.IDOf(d.Command))
			return messages.Answer{N: 1}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var subjects messages.Subjects
	publish := func(subject string, body []byte) {
		t.Helper()
		if _, err := at.js.Publish(at.ctx, subject, body); err != nil {
			t.Fatal(err)
		}
	}
	task := func(id string) []byte {
		t.Helper()
		body, err := messages.Body(messages.Task{ID: id, Content: messages.TextContent("do it"), Parent: messages.Parent{Caller: messages.Caller{Agent: "default/boss/b", Turn: "t1", Call: "c1"}}})
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	defer b.Pull(a.Partition(), 1)()
	publish(subjects.Peer(a), task("before"))
	at.stats(t, b, func(s Stats) bool { return s.Held == 1 })
	publish(subjects.Ctl(a), []byte(`{"type":"delete","id":"delete"}`))
	at.stats(t, b, func(s Stats) bool { return s.Applied == 1 && s.InHand == 0 })
	known.Store(true)
	publish(subjects.Peer(a), task("behind"))
	at.stats(t, b, func(s Stats) bool { return s.Applied == 2 && s.InHand == 0 })
	given.mu.Lock()
	defer given.mu.Unlock()
	if got := fmt.Sprint(given.ids); got != "[delete behind]" {
		t.Errorf("%s were applied", got)
	}
}
