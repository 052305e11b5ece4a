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

// run follows with one consumer until it is lost. A nil error says that the
// caller wants no more.
func (f *follower) run(ctx context.Context, yield func(eventlog.Head, error) bool) error {
	c, stream, filter := f.l.conn(f.partition), f.l.stream[f.partition], f.l.subjects.LogOf(f.partition)
	if !f.known {
		newest, err := c.newest(ctx, stream, filter)
		if err != nil {
			return err
		}
		f.past, f.known = seqOf(newest), true
	}
	cfg := jetstream.ConsumerConfig{FilterSubject: filter, HeadersOnly: true, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy}
	if f.at > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, f.at+1
	}
	feed, err := c.feed(ctx, stream, cfg)
	if err != nil {
		return err
	}
	defer feed.close()
	for {
		if !f.told && f.at >= f.past {
			f.told = true
			if !yield(eventlog.Head{}, nil) {
				return nil
			}
		}
		m, err := feed.next(ctx)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		f.pause.Reset()
		f.at = m.seq
		if head, ok := f.l.head(m); ok && !yield(head, nil) {
			return nil
		}
	}
}

// wait pauses before the next consumer, longer each time that nothing came.
func (f *follower) wait(ctx context.Context) {
	t := time.NewTimer(f.pause.NextBackOff())
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
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
