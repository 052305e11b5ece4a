package natslog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// putBase replaces the base of a stream that was read at a revision.
func (l *Log) putBase(ctx context.Context, shard int, b base, rev uint64) error {
	if _, err := l.putMark(ctx, baseKey(shard), b, rev); err != nil {
		return fmt.Errorf("change the record of stream %s: %w", l.names.log(shard), err)
	}
	return nil
}

// Void takes into the record of a stream that sequences which Check reported as
// Unacknowledged were never used.
func (l *Log) Void(ctx context.Context, shard int, loss *LossError) error {
	b := loss.evidence.base
	if b == nil {
		return fmt.Errorf("stream %s has no record to change", loss.Stream)
	}
	next := *b
	next.Removed += loss.Missing
	if err := l.putBase(ctx, shard, next, loss.evidence.rev); err != nil {
		return err
	}
	l.log.Info("sequences of a stream are not used, for the server could not store what it gave them to", "stream", loss.Stream, "sequences", loss.Missing, "behind", loss.Known)
	return nil
}

// Accept records that a person accepts what a stream of the log has lost: from now
// on what is there counts as all there was. It returns the newest acceptance, nil if
// there is none, and reports whether that was made now: a stream that is whole, and that
// nothing was taken out of, is left as it is.
func (l *Log) Accept(ctx context.Context, shard int, by, reason string) (accepted *Acceptance, now bool, err error) {
	loss := new(LossError)
	if err := l.Check(ctx, shard, true); err != nil && !errors.As(err, &loss) {
		return nil, false, err
	} else if err == nil {
		b := l.marks.bases[shard].Load()
		if len(b.Quarantined) == 0 {
			return b.Accepted, false, nil
		}
		loss.Detail = quarantinedDetail(b.Quarantined)
	}
	var old base
	rev, err := l.getMark(ctx, baseKey(shard), &old)
	if err != nil {
		return nil, false, err
	}
	stream, c, err := l.shard(shard)
	if err != nil {
		return nil, false, err
	}
	info, err := c.info(ctx, stream)
	if err != nil {
		return nil, false, err
	}
	if info.Config.Metadata[metadataStandIn] != "" {
		return nil, false, messages.Refuse(messages.Conflict, "stream %s stands in the place of a damaged one: nothing is lost yet but what cannot be read; stop the node that has the store and run `reprise doctor --data DIR --quarantine`, or restore a backup", stream)
	}
	b := newBase(info)
	b.Accepted = &Acceptance{By: by, Reason: reason, At: b.At, Loss: loss.Detail}
	if _, err := l.putMark(ctx, baseKey(shard), b, rev); err != nil {
		return nil, false, fmt.Errorf("record that the loss of stream %s is accepted: %w", stream, err)
	}
	l.remember(shard, b)
	return b.Accepted, true, nil
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

// Accepted returns when a loss of the stream that holds a partition was last
// accepted, as of the last Check. The zero time: never.
func (l *Log) Accepted(p messages.Partition) time.Time {
	if b := l.marks.bases[Shard(p)].Load(); b != nil && b.Accepted != nil {
		return b.Accepted.At
	}
	return time.Time{}
}

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
