package natslog

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Recorded is what is on record of the streams of a log that a backup must know of.
type Recorded map[string][]Quarantined

// Whole returns what was taken out of the streams of the log. It fails if a stream has lost
// messages, or stands in the place of a damaged one: a copy would not show what is missing.
func Whole(ctx context.Context, nc *nats.Conn, s messages.Subjects) (Recorded, error) {
	c, err := newConn(nc)
	if err != nil {
		return nil, err
	}
	l := &Log{names: NamesOf(s), subjects: s, conns: []*conn{c}, log: slog.New(slog.DiscardHandler)}
	taken := make(Recorded)
	for shard := range LogStreams {
		r, err := l.readEvidence(ctx, shard)
		if err != nil {
			return nil, err
		}
		if r.base == nil {
			continue
		}
		info, err := c.info(ctx, l.names.log(shard))
		if err != nil {
			return nil, err
		}
		if loss := judge(l.names.log(shard), r.known(), r, r, info); loss != nil && !loss.gap {
			return nil, fmt.Errorf("%w: a backup would lack it without a word; see `reprise doctor`", loss)
		}
		if len(r.base.Quarantined) > 0 {
			taken[l.names.log(shard)] = r.base.Quarantined
		}
	}
	return taken, nil
}

// BeginRecords begins the records of all streams of the log again, with what is there
// now: whatever was known before is void. It is for an installation that was just
// restored, on which no node runs. taken is what was taken out of the streams before.
func BeginRecords(ctx context.Context, nc *nats.Conn, s messages.Subjects, replicas int, taken Recorded) error {
	c, err := newConn(nc)
	if err != nil {
		return err
	}
	if err := ensureOne(ctx, c.js, marksStream(s, replicas)); err != nil {
		return err
	}
	l := &Log{names: NamesOf(s), subjects: s, conns: []*conn{c}, log: slog.New(slog.DiscardHandler)}
	for shard := range LogStreams {
		info, err := c.info(ctx, l.names.log(shard))
		if err != nil {
			return err
		}
		var old base
		rev, err := l.getMark(ctx, baseKey(shard), &old)
		if err != nil {
			return err
		}
		b := newBase(info)
		b.Quarantined = taken[l.names.log(shard)]
		if _, err := l.putMark(ctx, baseKey(shard), b, rev); err != nil {
			return fmt.Errorf("begin the record of stream %s: %w", l.names.log(shard), err)
		}
	}
	return nil
}
