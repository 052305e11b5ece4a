package natslog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Follow yields heads; see eventlog.Follower. It outlives lost connections and
// consumers and goes on where it was, leaving none out. Its error is ctx's, or
// that the connection was closed.
//
// The past is pushed. New heads are fetched twice a second: a consumer that is
// pushed each message as it is stored takes the store's lock between any two
// appends, which with sync_always costs a third of their rate.
func (l *Log) Follow(ctx context.Context, p messages.Partition) iter.Seq2[eventlog.Head, error] {
	return func(yield func(eventlog.Head, error) bool) {
		f := &follower{l: l, partition: p, pause: backoff.NewExponentialBackOff()}
		f.pause.InitialInterval, f.pause.MaxInterval = 20*time.Millisecond, time.Second
		for {
			err := f.run(ctx, yield)
			if err == nil {
				return
			}
			if ctx.Err() != nil {
				yield(eventlog.Head{}, ctx.Err())
				return
			}
			if l.conn(p).nc.IsClosed() {
				yield(eventlog.Head{}, fmt.Errorf("follow partition %v: %w", p, err))
				return
			}
			l.log.Debug("follow: open a new consumer", "partition", p.String(), "after", f.at, "error", err)
			f.wait(ctx)
		}
	}
}

type follower struct {
	l         *Log
	partition messages.Partition
	pause     *backoff.ExponentialBackOff
	at        uint64 // sequence of the newest message
	past      uint64 // the past is told once at has come this far
	known     bool   // past is known
	told      bool
}

// run tells the past, then what comes. A nil error says that the caller wants
// no more.
func (f *follower) run(ctx context.Context, yield func(eventlog.Head, error) bool) error {
	if !f.told {
		more, err := f.tell(ctx, yield)
		if err != nil || !more {
			return err
		}
	}
	return f.tail(ctx, yield)
}

func (f *follower) filter() string { return f.l.subjects.LogOf(f.partition) }

// tell gives the newest head of every agent and the marker behind them.
func (f *follower) tell(ctx context.Context, yield func(eventlog.Head, error) bool) (more bool, err error) {
	c, stream := f.l.conn(f.partition), f.l.stream[f.partition]
	if !f.known {
		newest, err := c.newest(ctx, stream, f.filter())
		if err != nil {
			return false, err
		}
		f.past, f.known = seqOf(newest), true
	}
	if f.at < f.past {
		cfg := jetstream.ConsumerConfig{FilterSubject: f.filter(), HeadersOnly: true, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
		if f.at > 0 {
			cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, f.at+1
		}
		feed, err := c.feed(ctx, stream, cfg)
		if err != nil {
			return false, err
		}
		defer feed.close()
		for f.at < f.past {
			m, err := feed.next(ctx)
			if err != nil {
				return false, err
			}
			if m != nil && !f.give(m, yield) {
				return false, nil
			}
		}
	}
	f.told = true
	return yield(eventlog.Head{}, nil), nil
}

// give hands on one message's head.
func (f *follower) give(m *delivery, yield func(eventlog.Head, error) bool) (more bool) {
	f.pause.Reset()
	f.at = m.seq
	head, ok := f.l.head(m)
	return !ok || yield(head, nil)
}

const (
	// fetchEvery is how often a partition is asked for new heads.
	fetchEvery = 500 * time.Millisecond
	// fetchAtOnce is how many heads are asked for in one request.
	fetchAtOnce = 1000
)

// tail gives heads as they are stored, with one consumer until it is lost.
func (f *follower) tail(ctx context.Context, yield func(eventlog.Head, error) bool) error {
	c := f.l.conn(f.partition)
	consumer, err := c.js.CreateConsumer(ctx, f.l.stream[f.partition], jetstream.ConsumerConfig{
		FilterSubject: f.filter(), HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.at + 1,
		AckPolicy: jetstream.AckNonePolicy, Replicas: 1, MemoryStorage: true, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return err
	}
	defer func() { // it expires if this is lost
		_ = c.nc.Publish("$JS.API.CONSUMER.DELETE."+f.l.stream[f.partition]+"."+consumer.CachedInfo().Name, nil)
	}()
	ticker := time.NewTicker(fetchEvery)
	defer ticker.Stop()
	breaks := c.breaks()
	for seen := uint64(0); ; {
		n, more, err := f.fetch(consumer, &seen, yield)
		switch {
		case err != nil || !more:
			return err
		case n == fetchAtOnce:
			continue
		}
		select {
		case <-ticker.C:
		case <-breaks:
			return fmt.Errorf("%w: the connection broke", errLost)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fetch gives what is there now. A message that the consumer has skipped means
// that the consumer was lost.
func (f *follower) fetch(consumer jetstream.Consumer, seen *uint64, yield func(eventlog.Head, error) bool) (n int, more bool, err error) {
	batch, err := consumer.FetchNoWait(fetchAtOnce)
	if err != nil {
		return 0, false, err
	}
	for msg := range batch.Messages() {
		meta, err := msg.Metadata()
		if err != nil {
			return n, false, err
		}
		if *seen++; meta.Sequence.Consumer != *seen {
			return n, false, fmt.Errorf("%w: message %d came after %d", errLost, meta.Sequence.Consumer, *seen-1)
		}
		n++
		m := &delivery{stored{meta.Sequence.Stream, msg.Headers(), nil}, msg.Subject(), meta.Timestamp}
		if !f.give(m, yield) {
			return n, false, nil
		}
	}
	return n, true, batch.Error()
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
	head.Epoch, head.First, head.Last = h.epoch, h.first, h.last
	head.Types = strings.Split(m.header.Get(headerEvents), " ")
	return head, true
}
