package natslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Follow yields heads; see eventlog.Feed. It outlives lost connections and
// consumers and continues where it was, leaving none out. Its error is ctx's, or
// that the connection was closed.
//
// The past is fetched first. New heads are taken twice a second: those of frames that this Log
// appended from memory, others by a fetch. A consumer that is pushed each message as it is
// stored takes the store's lock between any two appends, which with sync_always costs a
// third of their rate.
func (l *Log) Follow(ctx context.Context, p messages.Partition) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		var hidden hidden
		var failed error
		f := &follower{c: l.conn(p), stream: l.stream[p], filter: l.subjects.LogOf(p), log: l.log}
		f.own = &l.own[Shard(p)]
		f.giveOwn = f.ownOf(p, func(m eventlog.Stored) bool { return yield(m, nil) })
		f.give = func(m *delivery) bool {
			head, ok := l.head(m)
			if ok && !f.told {
				hidden.note(head)
			}
			if s, is := f.own.take(head.Seq); ok && is {
				return yield(s, nil)
			}
			return !ok || yield(eventlog.Stored{Head: head}, nil)
		}
		f.idle = func() bool {
			f.idle = nil // the end of the past is reported once
			more := true
			if more, failed = l.unhide(ctx, hidden, yield); failed != nil || !more {
				return false
			}
			return yield(eventlog.Stored{}, nil)
		}
		if err := cmp.Or(f.follow(ctx), failed); err != nil {
			yield(eventlog.Stored{}, fmt.Errorf("follow partition %v: %w", p, err))
		}
	}
}

// follower reads a stream as it grows, whatever becomes of its consumers.
type follower struct {
	c      *conn
	stream string
	filter string // empty: all there is
	log    *slog.Logger
	give   func(*delivery) (more bool)
	// own are the frames that this node itself appends to the stream. giveOwn passes on those
	// that follow a sequence without a gap and returns up to which one; after is at or
	// passed. What is read is headers, of the past the newest of each subject. Nil: messages
	// are read with their bodies, from behind at.
	own     *own
	giveOwn func(after uint64) (last uint64, more bool)
	idle    func() (more bool) // is called when nothing more is there now; nil: not
	pause   *backoff.ExponentialBackOff
	at      uint64 // sequence up to which all was given
	// passed is the sequence up to which the stream was read, at or more. The stream's
	// leader names its end, and a consumer reads a replica: what lies between at and passed
	// is of other partitions, or the replica lags and delivers it later. jumped is when they
	// came to differ, or when the leader was last asked which it is.
	passed uint64
	jumped time.Time
	// expected is a message of the partition that the leader has for certain: nothing is
	// passed over before it has come.
	expected uint64
	past     uint64 // the past is reported once at has come this far
	end      uint64 // where the stream ended before past was asked for: nothing of it lies behind past
	known    bool   // past is known
	told     bool
	since    int // how many were given since rest was called last
}

// follow runs until the caller wants no more, which is no error, until ctx ends
// or the connection is closed.
func (f *follower) follow(ctx context.Context) error {
	f.pause = backoff.NewExponentialBackOff()
	f.pause.InitialInterval, f.pause.MaxInterval = 20*time.Millisecond, time.Second
	for {
		err := f.run(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case f.c.nc.IsClosed():
			return err
		}
		if f.own != nil {
			f.own.forget()
		}
		f.known = f.known && (f.told || f.own == nil) // the stream may have lost its end meanwhile
		f.log.Debug("follow: open a new consumer", "stream", f.stream, "filter", f.filter, "after", f.at, "error", err)
		f.wait(ctx)
	}
}

// run delivers the past, then what comes. A nil error means that the caller wants
// no more.
func (f *follower) run(ctx context.Context) error {
	if !f.known {
		if f.own != nil {
			end, err := f.own.newest(ctx, f.c, f.stream)
			if err != nil {
				return err
			}
			f.end = end
		}
		newest, err := f.c.newest(ctx, f.stream, cmp.Or(f.filter, ">"))
		if err != nil {
			return err
		}
		if newest == nil { // or the leader cannot read it
			f.end = 0
		}
		f.past, f.known = seqOf(newest), true
	}
	if !f.told && f.own != nil {
		more, err := f.tell(ctx)
		if err != nil || !more {
			return err
		}
	}
	return f.tail(ctx)
}

// tell delivers the past, and reports when it is over.
func (f *follower) tell(ctx context.Context) (more bool, err error) {
	if f.at < f.past {
		feed, err := f.c.feed(ctx, f.stream, f.config())
		if err != nil {
			return false, err
		}
		defer feed.close()
		err = feed.all(ctx, func(m *delivery) bool {
			more = f.take(m)
			return more && f.at < f.past
		}, nil)
		if err != nil || !more {
			return false, err
		}
	}
	f.at = max(f.at, f.end)
	f.passed, f.told = max(f.passed, f.at), true
	return f.rest(), nil
}

// config is that of a consumer of what comes behind at.
func (f *follower) config() jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{FilterSubject: f.filter, HeadersOnly: f.own != nil, InactiveThreshold: longExpires}
	switch {
	case f.at > 0 || f.told:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, f.at+1
	case f.own != nil:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	}
	return cfg
}

// take hands on one message.
func (f *follower) take(m *delivery) (more bool) {
	f.pause.Reset()
	f.at, f.passed = m.seq, max(f.passed, m.seq)
	return f.give(m)
}

// ownOf returns a giveOwn for the heads of a partition. Where something before a head may
// still be delivered, it passes on none and stops before that head, which is then expected.
func (f *follower) ownOf(p messages.Partition, give func(eventlog.Stored) (more bool)) func(uint64) (uint64, bool) {
	return func(after uint64) (uint64, bool) {
		list, last := f.own.behind(after, p)
		if len(list) > 0 && after > f.at {
			f.expected = list[0].Seq
			return f.expected - 1, true
		}
		for _, m := range list {
			if !give(m) {
				return m.Seq, false
			}
		}
		return last, true
	}
}

// rest calls idle, as nothing more is there now, and reports whether more is wanted.
func (f *follower) rest() (more bool) { return f.idle == nil || f.idle() }

// fetchEvery is how often a stream is asked for new messages.
const fetchEvery = 500 * time.Millisecond

// tail delivers messages as they are stored.
func (f *follower) tail(ctx context.Context) error {
	breaks := f.c.breaks()
	r := reader{follower: f, quiet: quietRounds, goal: f.past}
	defer r.close()
	ticker := time.NewTicker(fetchEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		n, more, err := r.read(ctx)
		f.since += n
		if err != nil || !more {
			return err
		}
		if n > 0 && !r.ended {
			continue
		}
		if (f.since > 0 || !f.told) && f.at >= f.past && r.ended {
			if f.since, f.told = 0, true; !f.rest() {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		if f.c.breaks() != breaks { // the server may have lost the stream's end
			return fmt.Errorf("%w: the connection broke", errLost)
		}
	}
	return ctx.Err()
}

// wait pauses before the next consumer, longer each time that nothing came.
func (f *follower) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(f.pause.NextBackOff()):
	}
}

// head reads a message's headers. A subject that is no agent's is reported and
// has no head.
func (l *Log) head(m *delivery) (eventlog.Head, bool) {
	a, err := l.subjects.ParseLog(m.subject)
	if err != nil {
		l.log.Warn("a message on a log subject that is no agent's is skipped", "subject", m.subject, "sequence", m.seq, "error", err)
		return eventlog.Head{}, false
	}
	head := eventlog.Head{Agent: a, Seq: m.seq, Time: m.time}
	h, err := parseHeading(m.header)
	if err == nil {
		head.Summary, err = parseSummary(m.header)
	}
	if err != nil {
		if !errors.Is(err, errForeign) {
			l.log.Warn("a frame's headers cannot be read", "agent", a.String(), "sequence", m.seq, "error", err)
		}
		head.Foreign = true
		return head, true
	}
	head.ID, head.Epoch, head.First, head.Last = h.id, h.epoch, h.first, h.last
	return head, true
}
