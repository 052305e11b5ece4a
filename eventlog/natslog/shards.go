package natslog

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Shards is how many there are: one for each stream of the log.
func (l *Log) Shards() int { return LogStreams }

// ShardOf is the shard that holds an agent.
func (l *Log) ShardOf(a messages.AgentID) int {
	return Shard(a.Partition())
}

// Shard is the shard that holds a partition.
func Shard(p messages.Partition) int { return int(p) / perStream }

// shard returns the stream and the connection that serves it.
func (l *Log) shard(n int) (stream string, c *conn, err error) {
	if n < 0 || n >= LogStreams {
		return "", nil, fmt.Errorf("there is no shard %d: they are numbered from 0 to %d", n, LogStreams-1)
	}
	return l.names.log(n), l.conn(messages.Partition(n * perStream)), nil
}

// ShardEnd is the sequence of the shard's newest message; see eventlog.Feed.
func (l *Log) ShardEnd(ctx context.Context, shard int) (uint64, error) {
	stream, c, err := l.shard(shard)
	if err != nil {
		return 0, err
	}
	info, err := c.info(ctx, stream)
	return info.State.LastSeq, err
}

// ReadShard yields a shard's messages; see eventlog.Feed. As Follow it outlives
// lost connections and consumers, and fetches what comes twice a second. The past
// is fetched, too, a few messages ahead of the reader. Its error is ctx's, that the connection was closed, that
// after is beyond the shard's end, or that the end could not be looked up to begin with.
func (l *Log) ReadShard(ctx context.Context, shard int, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		give := func(s eventlog.Stored) bool { return yield(s, nil) }
		pause := func(upto uint64) bool { return yield(eventlog.Stored{Head: eventlog.Head{Seq: upto}}, nil) }
		if err := l.readOn(ctx, shard, "", after, give, pause); err != nil {
			yield(eventlog.Stored{}, fmt.Errorf("read shard %d: %w", shard, err))
		}
	}
}

// ReadPartition yields the messages of a partition that its shard's leader has; see
// eventlog.Feed. Its errors are those of ReadShard.
func (l *Log) ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		give := func(s eventlog.Stored) bool { return yield(s, nil) }
		end := func(uint64) bool { return false }
		if err := l.readOn(ctx, Shard(p), l.subjects.LogOf(p), after, give, end); err != nil {
			yield(eventlog.Stored{}, fmt.Errorf("read partition %s: %w", p, err))
		}
	}
}

// readOn delivers the messages of a shard that a filter matches; where nothing more is there it calls
// pause. Each reports whether more is wanted.
func (l *Log) readOn(ctx context.Context, shard int, filter string, after uint64, give func(eventlog.Stored) bool, pause func(upto uint64) bool) error {
	stream, c, err := l.shard(shard)
	if err != nil {
		return err
	}
	end, err := l.ShardEnd(ctx, shard) // its message may be gone: a restore has left it out, say
	switch {
	case err != nil:
		return err
	case after > end:
		return fmt.Errorf("sequence %d is beyond its end, which is %d: %w", after, end, eventlog.ErrElsewhere)
	}
	f := &follower{c: c, stream: stream, filter: filter, at: after, passed: after, log: l.log}
	f.give = func(m *delivery) bool {
		head, ok := l.head(m)
		if !ok {
			return true
		}
		s := eventlog.Stored{Head: head}
		if m.isFrame() {
			s.Types = strings.Split(m.header.Get(headerEvents), " ")
			s.Frame, s.Digest = m.decoder(head), func() messages.Digest { return messages.DigestOf(m.data) }
		}
		return give(s)
	}
	f.idle = func() bool { return pause(max(f.at, end)) }
	return f.follow(ctx)
}

// decoder reads the message's frame when it is asked to.
func (m *delivery) decoder(head eventlog.Head) func() (*messages.Frame, error) {
	return func() (*messages.Frame, error) {
		f, err := decode(head.Agent, &m.stored)
		if err != nil {
			return nil, &eventlog.DamageError{Agent: head.Agent, Seq: head.Seq, Event: max(1, head.First), Err: err}
		}
		return f, nil
	}
}
