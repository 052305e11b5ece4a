package natslog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog/internal/answers"
)

// conn is a connection and what is asked on it.
type conn struct {
	nc *nats.Conn
	js jetstream.JetStream

	slots chan *slot // that no request uses
	feeds chan *slot // that no feed uses

	mu     sync.Mutex
	asking map[string]*asking
}

func newConn(nc *nats.Conn) (*conn, error) {
	js, err := jetstream.New(nc)
	return &conn{nc: nc, js: js, slots: make(chan *slot, slotsKept), feeds: make(chan *slot, feedsKept), asking: make(map[string]*asking)}, err
}

// breaks returns how often the connection has been made again.
func (c *conn) breaks() uint64 { return c.nc.Stats().Reconnects }

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
