package natslog

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// quietRounds is how many fetches in a row must have brought nothing but our own frames
	// before the stream's end is asked for in their place, once another node has written.
	quietRounds = 4
	// settleEvery is how often the leader of a replicated stream is asked whether something is
	// of the partition among what was passed over: a head that a replica delivers late comes
	// by then at the latest, and an owner that takes it late recovers its agent then. The
	// answer holds a whole frame.
	settleEvery = 30 * time.Second
	// readerExpires is how long the server keeps a consumer that nothing is fetched from.
	readerExpires = time.Minute
)

// reader reads what is new to a follower: own frames from memory, others through one
// consumer, which is made when it is needed.
type reader struct {
	*follower
	consumer jetstream.Consumer // nil: none
	from     uint64             // the consumer gives what is behind it
	used     time.Time
	seen     uint64 // how many messages it has given
	late     bool   // the answer to a fetch may have been dropped
	// quiet counts the fetches in a row that brought only our own frames. unsure are the
	// sequences of those that may turn out to be: their acknowledgement was on its way.
	quiet  int
	unsure []uint64
	// goal is where the stream ended half a second ago.
	goal uint64
	// ended reports whether nothing more was there when read was called last.
	ended bool
}

// read gives what is there now, and returns how many messages came from the stream.
func (r *reader) read(ctx context.Context) (n int, more bool, err error) {
	if r.own == nil {
		return r.fetch(ctx)
	}
	if !r.takeOwn() {
		return 0, false, nil
	}
	r.count()
	if (r.at < r.passed || r.at < r.expected) && time.Since(r.jumped) >= settleEvery {
		if err := r.settle(ctx); err != nil {
			return 0, false, err
		}
	}
	switch {
	case r.quiet < quietRounds:
		return r.fetch(ctx)
	case r.passed >= r.goal:
		r.goal, err = r.own.newest(ctx, r.c, r.stream)
		r.ended = r.passed >= r.goal
		return 0, err == nil, err
	}
	n, more, err = r.fetch(ctx)
	if err == nil && more && n < r.atOnce && !r.late && r.filter != "" {
		r.jump()
	}
	return n, more, err
}

// jump passes over what a fetch has not brought up to the goal: it is of other partitions, or,
// in a replicated stream, the replica lags.
func (r *reader) jump() {
	if r.at < r.expected || r.passed >= r.goal {
		return
	}
	if r.at == r.passed {
		r.jumped = time.Now()
	}
	if r.passed = r.goal; !r.own.isReplicated() {
		r.at = r.passed
	}
}

// settle asks the stream's leader for the partition's newest message. If that was given, all up
// to passed was; else the stream is read until it comes, by another consumer if this one has not
// brought it since the leader was last asked. An answer without a message proves nothing: the
// leader may be unable to read it.
func (r *reader) settle(ctx context.Context) error {
	r.jumped = time.Now()
	newest, err := r.c.newest(ctx, r.stream, r.filter)
	if err != nil || newest == nil {
		return err
	}
	if newest.seq <= r.at {
		r.at, r.expected, r.goal = r.passed, 0, r.passed
		return nil
	}
	if r.at == r.passed {
		r.close()
	}
	r.passed, r.expected, r.goal = r.at, newest.seq, max(r.goal, newest.seq)
	return nil
}

// count notes whether the fetch before brought only our own frames.
func (r *reader) count() {
	for _, seq := range r.unsure {
		if !r.own.has(seq) {
			r.quiet = 0
		}
	}
	r.unsure = r.unsure[:0]
}

// takeOwn gives the frames that this node appended behind those that were given. If one waits
// for what a replica may still deliver, it is read from the stream.
func (r *reader) takeOwn() (more bool) {
	last, more := r.giveOwn(r.passed)
	if last > r.passed {
		r.since++
	}
	if r.at == r.passed {
		r.at = last
	}
	r.passed, r.goal = last, max(r.goal, r.expected)
	return more
}

// open makes the consumer, unless there is one that is not far behind.
func (r *reader) open(ctx context.Context) error {
	if r.consumer != nil && (r.own == nil || time.Since(r.used) < readerExpires/2 && r.at-r.from < 10*uint64(r.atOnce)) {
		r.used = time.Now()
		return nil
	}
	r.close()
	cfg := r.config()
	cfg.AckPolicy, cfg.Replicas, cfg.MemoryStorage, cfg.InactiveThreshold = jetstream.AckNonePolicy, 1, true, readerExpires
	consumer, err := r.c.js.CreateConsumer(ctx, r.stream, cfg)
	if err != nil {
		return err
	}
	r.consumer, r.from, r.used, r.seen, r.late = consumer, r.at, time.Now(), 0, false
	return nil
}

// close removes the consumer; it expires if that is lost.
func (r *reader) close() {
	if r.consumer != nil {
		_ = r.c.nc.Publish("$JS.API.CONSUMER.DELETE."+r.stream+"."+r.consumer.CachedInfo().Name, nil)
	}
	r.consumer = nil
}

// fetch gives what the stream has now, of whole messages the past, too: one that is pushed
// may be megabytes ahead of a slow reader. A message that the consumer has skipped means that
// the consumer was lost.
func (r *reader) fetch(ctx context.Context) (n int, more bool, err error) {
	if err := r.open(ctx); err != nil {
		return 0, false, err
	}
	begun := time.Now()
	batch, err := r.consumer.FetchNoWait(r.atOnce)
	if err != nil {
		return 0, false, err
	}
	r.quiet++
	defer func() { r.ended = n < r.atOnce }()
	for msg := range batch.Messages() {
		meta, err := msg.Metadata()
		if err != nil {
			return n, false, err
		}
		if r.seen++; meta.Sequence.Consumer != r.seen {
			return n, false, fmt.Errorf("%w: message %d came after %d", errLost, meta.Sequence.Consumer, r.seen-1)
		}
		n++
		r.from = meta.Sequence.Stream
		if meta.Sequence.Stream <= r.at {
			continue // one of our own, given from memory
		}
		r.unsure = append(r.unsure, meta.Sequence.Stream)
		m := &delivery{stored: stored{seq: meta.Sequence.Stream, subject: msg.Subject(), header: msg.Headers(), data: msg.Data()}, time: meta.Timestamp}
		if !r.take(m) {
			return n, false, nil
		}
	}
	if err := batch.Error(); err != nil {
		return n, true, err
	}
	switch {
	case n < r.atOnce && time.Since(begun) >= fetchPatience:
		r.late = true
	case r.late:
		return n, true, r.missed(ctx)
	}
	return n, true, nil
}

// missed finds out, once a fetch was answered in time, and so all before it, whether the
// consumer has delivered more than came.
func (r *reader) missed(ctx context.Context) error {
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return nil // it is asked again after the next fetch, which fails if the consumer is gone
	}
	if info.Delivered.Consumer > r.seen {
		return fmt.Errorf("%w: %d messages were delivered and %d came", errLost, info.Delivered.Consumer, r.seen)
	}
	r.late = false
	return nil
}
