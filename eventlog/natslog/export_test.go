package natslog

import (
	"context"
	"math"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// FrameHeader is the headers of an entry without the fence, for tests that
// store what Append would not.
func FrameHeader(e eventlog.Entry) nats.Header {
	return nats.Header{
		headerFrame:  {frameLine(e.Frame)},
		headerEvents: {e.Types()},
		headerState:  {stateLine(e.Summary)},
	}
}

// Explained adds to an error of opening what to do about it.
var Explained = explained

// Streams are the streams as Open creates them.
var Streams = streams

// AskedAtOnce is how many requests of agents to a stream wait for answers at the same time.
const AskedAtOnce = askedAtOnce

// Newest returns what asks a stream for its newest message.
func Newest(nc *nats.Conn) (func(ctx context.Context, stream string) error, error) {
	c, err := newConn(nc)
	return func(ctx context.Context, stream string) error {
		_, err := c.newest(ctx, stream, ">")
		return err
	}, err
}

// Fetch makes a consumer of a stream and returns what fetches from it.
func Fetch(ctx context.Context, nc *nats.Conn, stream string) (func(ctx context.Context) error, error) {
	c, err := newConn(nc)
	if err != nil {
		return nil, err
	}
	f, err := c.feed(ctx, stream, jetstream.ConsumerConfig{})
	return func(ctx context.Context) error {
		_, _, err := f.fetch(ctx, func(*delivery) bool { return true })
		return err
	}, err
}

// ScrubTo reads a stream through up to a sequence, and returns how far it has come and what
// cannot be read.
func ScrubTo(ctx context.Context, nc *nats.Conn, stream string, end uint64) (at uint64, bad []Unreadable, err error) {
	c, err := newConn(nc)
	if err != nil {
		return 0, nil, err
	}
	p := &scrubPass{l: new(Log), c: c, stream: stream, end: end, left: math.MaxInt, names: make(map[uint64]messages.AgentID)}
	if err := p.read(ctx, 0); err != nil {
		return p.at, nil, err
	}
	bad, err = p.judge(ctx)
	return p.at, bad, err
}

// Purge returns what purges a stream.
func Purge(nc *nats.Conn) (func(ctx context.Context, stream string) error, error) {
	c, err := newConn(nc)
	return func(ctx context.Context, stream string) error { return c.purge(ctx, stream, ">", 0) }, err
}

// QuietRounds is how many fetches must have brought nothing but a node's own frames before it
// stops reading the stream for them.
const QuietRounds = quietRounds

// ReadOn has a follower of a partition, which was given all up to at and passed over what
// follows up to passed a while ago, read until it has come to the end. It returns the sequences
// that it is given, and where it is then.
func (l *Log) ReadOn(ctx context.Context, p messages.Partition, at, passed uint64) (given []uint64, atThen, passedThen uint64, err error) {
	f := &follower{c: l.conn(p), stream: l.stream[p], filter: l.subjects.LogOf(p), log: l.log, own: &own{replicated: true}, pause: backoff.NewExponentialBackOff()}
	f.at, f.passed, f.jumped = at, passed, time.Now().Add(-settleEvery)
	f.give = func(m *delivery) bool { given = append(given, m.seq); return true }
	f.giveOwn = f.ownOf(p, nil)
	r := reader{follower: f, quiet: quietRounds, goal: passed}
	defer r.close()
	for range quietRounds + 2 {
		if _, _, err = r.read(ctx); err != nil || r.passed >= r.goal {
			break
		}
	}
	return given, r.at, r.passed, err
}

// BytesAtOnce is how much a fetch brings.
const BytesAtOnce = bytesAtOnce

// FetchFrom returns how many messages of a partition the first fetch behind a sequence brings.
func (l *Log) FetchFrom(ctx context.Context, p messages.Partition, after uint64) (n int, err error) {
	f, err := l.conn(p).feed(ctx, l.stream[p], jetstream.ConsumerConfig{FilterSubject: l.subjects.LogOf(p), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1})
	if err != nil {
		return 0, err
	}
	defer f.close()
	n, _, err = f.fetch(ctx, func(*delivery) bool { return true })
	return n, err
}

// Fetches reads a partition through and returns how many bytes each fetch has brought.
func (l *Log) Fetches(ctx context.Context, p messages.Partition) (sizes []int, err error) {
	f, err := l.conn(p).feed(ctx, l.stream[p], jetstream.ConsumerConfig{FilterSubject: l.subjects.LogOf(p)})
	if err != nil {
		return nil, err
	}
	defer f.close()
	for !f.ended && err == nil {
		size := 0
		_, _, err = f.fetch(ctx, func(m *delivery) bool { size += len(m.data); return true })
		sizes = append(sizes, size)
	}
	return sizes, err
}
