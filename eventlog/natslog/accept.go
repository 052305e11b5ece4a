package natslog

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// Accepted returns when a loss of the stream that holds a partition was last
// accepted, as of the last Check. The zero time: never.
func (l *Log) Accepted(p messages.Partition) time.Time {
	if b := l.marks.bases[Shard(p)].Load(); b != nil && b.Accepted != nil {
		return b.Accepted.At
	}
	return time.Time{}
}
