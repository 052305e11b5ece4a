package natslog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// heartbeat is how often an idle consumer says that it is alive.
	heartbeat = 2 * time.Second
	// silence is how long a consumer may say nothing before it counts as lost.
	silence = 5 * time.Second
)

// feed is one ephemeral push consumer of one node's memory and what it has
// sent so far. Messages come in order and without gaps, or next fails with
// errLost. It is used by one goroutine.
type feed struct {
	c      *conn
	stream string
	name   string
	sub    *nats.Subscription
	msgs   chan *nats.Msg
	done   chan struct{} // closed when the feed is
	timer  *time.Timer
	seen   uint64 // consumer sequence of the newest message
	// pending is how many messages were still to come, when the newest one was sent.
	pending uint64
	// passed is the stream sequence up to which the server had looked, when it last said so.
	passed uint64
}

// errLost says that the consumer is gone or has skipped a message: make a new
// one that begins after the last message that came.
var errLost = errors.New("the consumer was lost")

// delivery is a message of a feed. Data is empty in a feed of headers.
type delivery struct {
	stored
	time time.Time
}

// feed opens a consumer on stream. The config's filter and where to begin are
// the caller's. The feed ends with ctx; close it anyway.
func (c *conn) feed(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (*feed, error) {
	f := &feed{c: c, stream: stream, msgs: make(chan *nats.Msg, 64), done: make(chan struct{}), timer: time.NewTimer(silence)}
	cfg.DeliverSubject = c.nc.NewInbox()
	cfg.AckPolicy = jetstream.AckNonePolicy
	cfg.MaxDeliver = 1
	cfg.Replicas, cfg.MemoryStorage = 1, true
	cfg.FlowControl, cfg.IdleHeartbeat = true, heartbeat
	cfg.InactiveThreshold = 2 * silence
	var err error
	if f.sub, err = c.nc.Subscribe(cfg.DeliverSubject, f.deliver); err != nil {
		return nil, err
	}
	if err = f.sub.SetPendingLimits(-1, -1); err != nil { // flow control bounds it
		return nil, errors.Join(err, f.sub.Unsubscribe())
	}
	var made jetstream.PushConsumer
	done, err := c.turn(ctx, stream)
	if err == nil {
		made, err = c.js.CreatePushConsumer(ctx, stream, cfg)
		done(err == nil)
	}
	if err != nil {
		if ctx.Err() == nil {
			err = forNow(err)
		}
		return nil, errors.Join(err, f.sub.Unsubscribe())
	}
	f.name, f.pending = made.CachedInfo().Name, made.CachedInfo().NumPending
	return f, nil
}

func (f *feed) deliver(m *nats.Msg) {
	select {
	case f.msgs <- m:
	case <-f.done:
	}
}

// close removes the consumer. The server would do so by itself, later.
func (f *feed) close() {
	close(f.done)
	f.timer.Stop()
	_ = f.sub.Unsubscribe()                                                 // fails only with the connection
	_ = f.c.nc.Publish("$JS.API.CONSUMER.DELETE."+f.stream+"."+f.name, nil) // it expires if this is lost
}

// next gives the next message. After heartbeats only, it gives nil, nil, so
// that the caller can look at the time.
func (f *feed) next(ctx context.Context) (*delivery, error) {
	m, err := f.receive(ctx)
	if err != nil {
		return nil, err
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "100" {
		return nil, f.control(m)
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, nil // somebody else has published to our inbox
	}
	if meta.Sequence.Consumer != f.seen+1 {
		return nil, fmt.Errorf("%w: message %d came after %d", errLost, meta.Sequence.Consumer, f.seen)
	}
	f.seen++
	f.pending = meta.NumPending
	return &delivery{stored{seq: meta.Sequence.Stream, subject: m.Subject, header: m.Header, data: m.Data}, meta.Timestamp}, nil
}

func (f *feed) receive(ctx context.Context) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select { // most often one is there
	case m := <-f.msgs:
		return m, nil
	default:
	}
	f.timer.Reset(silence)
	select {
	case m := <-f.msgs:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.timer.C:
		return nil, fmt.Errorf("%w: silent for %v", errLost, silence)
	}
}

// control answers flow control and notices messages lost before a heartbeat.
func (f *feed) control(m *nats.Msg) error {
	reply := m.Reply
	if reply == "" {
		reply = m.Header.Get("Nats-Consumer-Stalled")
	}
	if reply != "" {
		return f.c.nc.Publish(reply, nil)
	}
	if passed, err := strconv.ParseUint(m.Header.Get("Nats-Last-Stream"), 10, 64); err == nil {
		f.passed = passed
	}
	if last, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64); err == nil && last != f.seen {
		return fmt.Errorf("%w: message %d did not come, only %d", errLost, last, f.seen)
	}
	return nil
}
