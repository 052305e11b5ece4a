package memlog

import (
	"context"
	"fmt"
	"iter"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Shards is how many there are: one for each partition.
func (l *Log) Shards() int { return messages.Partitions }

// ShardEnd is the sequence of the shard's newest message; see eventlog.Feed.
func (l *Log) ShardEnd(ctx context.Context, shard int) (uint64, error) {
	if err := check(ctx, shard); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.parts[shard].all
	if len(all) == 0 {
		return 0, nil
	}
	return all[len(all)-1].head.Seq, nil
}

func check(ctx context.Context, shard int) error {
	if shard < 0 || shard >= messages.Partitions {
		return fmt.Errorf("there is no shard %d: they are numbered from 0 to %d", shard, messages.Partitions-1)
	}
	return ctx.Err()
}

// ReadShard yields a shard's messages; see eventlog.Feed. Its error is ctx's.
func (l *Log) ReadShard(ctx context.Context, shard int, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		end, err := l.ShardEnd(ctx, shard)
		if err == nil && after > end {
			err = fmt.Errorf("read shard %d: sequence %d is beyond its end, which is %d: %w", shard, after, end, eventlog.ErrElsewhere)
		}
		if err != nil {
			yield(eventlog.Stored{}, err)
			return
		}
		for told := false; ; told = true {
			all, more := l.behind(messages.Partition(shard), after)
			for _, m := range all {
				if ctx.Err() != nil {
					break
				}
				if after = m.head.Seq; !yield(m.message(), nil) {
					return
				}
			}
			if (len(all) > 0 || !told) && ctx.Err() == nil && !yield(eventlog.Stored{Head: eventlog.Head{Seq: after}}, nil) {
				return
			}
			if !await(ctx, more) {
				yield(eventlog.Stored{}, ctx.Err())
				return
			}
		}
	}
}

// ReadPartition yields a partition's messages; see eventlog.Feed. Its error is ctx's.
func (l *Log) ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		for m, err := range l.ReadShard(ctx, int(p), after) {
			if err == nil && m.Agent == (messages.AgentID{}) || !yield(m, err) {
				return
			}
		}
	}
}

func (m *stored) message() eventlog.Stored {
	s := eventlog.Stored{Head: m.head}
	if !m.head.Foreign {
		s.Types, s.Frame, s.Digest = m.types, m.frame, func() messages.Digest { return messages.DigestOf(m.bytes) }
	}
	return s
}

func (m *stored) frame() (*messages.Frame, error) {
	f, err := messages.DecodeFrame(m.head.Agent, m.bytes)
	if err != nil {
		return nil, &eventlog.DamageError{Agent: m.head.Agent, Seq: m.head.Seq, Event: m.head.First, Err: err}
	}
	return f, nil
}
