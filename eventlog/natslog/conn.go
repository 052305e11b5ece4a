package natslog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/internal/answers"
)

// conn is a connection with its own way of matching answers to requests: one
// subscription and a map of those who wait, cheaper than the library's.
type conn struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	prefix string // of reply subjects

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*call
	broken  chan struct{} // closed and replaced when the connection breaks
	asking  map[string]*asking
}

// call waits for one answer. Whoever takes it out of the map decides: the
// answer, which then always comes, or the caller, who has given up.
type call struct {
	answer chan *nats.Msg
	timer  *time.Timer
}

var calls = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &call{answer: make(chan *nats.Msg, 1), timer: t}
}}

func newConn(nc *nats.Conn) (*conn, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, js: js, prefix: nc.NewInbox() + ".", waiting: make(map[uint64]*call), broken: make(chan struct{}), asking: make(map[string]*asking)}
	sub, err := nc.Subscribe(c.prefix+"*", c.answered)
	if err != nil {
		return nil, err
	}
	go c.watch(nc.StatusChanged(nats.RECONNECTING, nats.CLOSED))
	return c, sub.SetPendingLimits(-1, -1)
}

// watch wakes whoever waits for something that a broken connection will not
// bring any more. It ends with the connection.
func (c *conn) watch(changed chan nats.Status) {
	defer c.nc.RemoveStatusListener(changed)
	for !c.nc.IsClosed() {
		<-changed
		c.mu.Lock()
		close(c.broken)
		c.broken = make(chan struct{})
		c.mu.Unlock()
	}
}

// breaks is closed when the connection breaks from now on.
func (c *conn) breaks() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

func (c *conn) answered(m *nats.Msg) {
	n, err := strconv.ParseUint(m.Subject[len(c.prefix):], 36, 64)
	if err != nil {
		return
	}
	if w := c.take(n); w != nil {
		w.answer <- m
	}
}

func (c *conn) take(n uint64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[n]
	delete(c.waiting, n)
	return w
}

func (c *conn) register(w *call) (n uint64, breaks <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.waiting[c.last] = w
	return c.last, c.broken
}

// unavailable is an error that may be over soon.
type unavailable string

func (e unavailable) Error() string { return string(e) }

func (unavailable) Is(target error) bool { return target == eventlog.ErrUnavailable }

const (
	errNoAnswer     = unavailable("no answer in time")
	errBroken       = unavailable("the connection broke before the answer came")
	errUnsent       = unavailable("the connection to NATS is broken and being made again")
	errNoResponders = unavailable("no stream answers for this subject: JetStream is starting, electing a leader or gone")
)

// request publishes m and waits for the answer, until ctx ends or
// answers.Wait is over. m's subject must be set.
func (c *conn) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	return c.requestWithin(ctx, m, answers.Wait)
}

// requestWithin is request with a patience of its own.
func (c *conn) requestWithin(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := calls.Get().(*call)
	defer calls.Put(w)
	n, breaks := c.register(w)
	m.Reply = string(strconv.AppendUint(append(make([]byte, 0, 64), c.prefix...), n, 36))
	if err := c.nc.PublishMsg(m); err != nil {
		c.take(n)
		if errors.Is(err, nats.ErrReconnectBufExceeded) { // it is set to hold nothing
			err = errUnsent
		}
		return nil, err
	}
	w.timer.Reset(wait)
	defer w.timer.Stop()
	var failed error
	select {
	case answer := <-w.answer:
		return responded(answer)
	case <-ctx.Done():
		failed = ctx.Err()
	case <-breaks:
		failed = errBroken
	case <-w.timer.C:
		failed = fmt.Errorf("%w: waited %v", errNoAnswer, wait)
	}
	if c.take(n) != nil {
		return nil, failed
	}
	return responded(<-w.answer) // it came at the same moment
}

// askedAtOnce is how many requests to the API of one stream, for single agents, wait for
// answers at the same time. A server drops its whole queue of API requests, everyone's, when
// 10,000 wait (JSDefaultRequestQueueLimit of nats-server v2.15.2): those of 37 streams and
// several nodes stay below, and a stream that does not answer delays no other.
const askedAtOnce = 32

// asking is the requests to the API of one stream that wait for answers.
type asking struct {
	places   chan struct{}
	answered atomic.Int64 // when the stream last answered, in nanoseconds since 1970
}

func (c *conn) asks(stream string) *asking {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asking[stream]
	if a == nil {
		a = &asking{places: make(chan struct{}, askedAtOnce)}
		c.asking[stream] = a
	}
	return a
}

// turn waits until a request to the API of a stream may be sent. It fails when the stream has
// not answered for answers.Wait. The caller calls done when the request was answered, or will
// not be.
func (c *conn) turn(ctx context.Context, stream string) (done func(answered bool), err error) {
	a := c.asks(stream)
	done = func(answered bool) {
		if answered {
			a.answered.Store(time.Now().UnixNano())
		}
		<-a.places
	}
	silent := time.NewTimer(answers.Wait)
	defer silent.Stop()
	for {
		select {
		case a.places <- struct{}{}:
			return done, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-silent.C:
			since := time.Since(time.Unix(0, a.answered.Load()))
			if since >= answers.Wait {
				return nil, fmt.Errorf("%w: %d requests were before this one, and none was answered within %v", errNoAnswer, askedAtOnce, answers.Wait)
			}
			silent.Reset(answers.Wait - since)
		}
	}
}

// api is request to the API of a stream, in turn. subject is what stands before the stream's name.
func (c *conn) api(ctx context.Context, subject, stream string, data []byte) (*nats.Msg, error) {
	done, err := c.turn(ctx, stream)
	if err != nil {
		return nil, err
	}
	answer, err := c.request(ctx, &nats.Msg{Subject: subject + stream, Data: data})
	done(err == nil)
	return answer, err
}

func responded(m *nats.Msg) (*nats.Msg, error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return nil, errNoResponders
	}
	return m, nil
}
