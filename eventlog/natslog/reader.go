package natslog

import (
	"context"
	"time"
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
)

// reader reads what is new to a follower: own frames from memory, others through one
// consumer, which is made when it is needed.
type reader struct {
	*follower
	feed *feed  // nil: none
	from uint64 // the feed delivers what is behind it
	used time.Time
	// quiet counts the fetches in a row that brought only our own frames. unsure are the
	// sequences of those that may turn out to be: their acknowledgement was on its way.
	quiet  int
	unsure []uint64
	// goal is where the stream ended half a second ago.
	goal uint64
	// ended reports whether nothing more was there when read was called last.
	ended bool
}

// read delivers what is there now, and returns how many messages came from the stream.
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
	if err == nil && more && r.ended {
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

// takeOwn delivers the frames that this node appended behind those that were given. If one waits
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
func (r *reader) open(ctx context.Context) (err error) {
	if r.feed != nil && (r.own == nil || time.Since(r.used) < longExpires/2 && r.at-r.from < 10*headsAtOnce) {
		r.used = time.Now()
		return nil
	}
	r.close()
	r.feed, err = r.c.feed(ctx, r.stream, r.config())
	r.from, r.used = r.at, time.Now()
	return err
}

// close removes the consumer.
func (r *reader) close() {
	if r.feed != nil {
		r.feed.close()
	}
	r.feed = nil
}

// fetch delivers what the stream has now, of whole messages the past, too.
func (r *reader) fetch(ctx context.Context) (n int, more bool, err error) {
	if err := r.open(ctx); err != nil {
		return 0, false, err
	}
	r.quiet++
	defer func() { r.ended = r.feed.ended }()
	return r.feed.fetch(ctx, func(m *delivery) bool {
		if r.from = m.seq; m.seq <= r.at {
			return true // one of our own, given from memory
		}
		r.unsure = append(r.unsure, m.seq)
		return r.take(m)
	})
}
