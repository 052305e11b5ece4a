package natslog

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Snapshots are not purged. A server writes nothing of a message that a newer one on its subject
// has replaced, only of one that is purged; so if it is killed after the purge of a snapshot, it
// has the one before it again. A message without data is stored in the place of each chunk instead: at any
// recovery the newest message on a subject is the one that stays.

// removed is the chunk header of a message that stands in the place of a chunk.
const removed = "removed"

// isRemoved reports whether the message stands in the place of a chunk that was removed.
func (s *stored) isRemoved() bool { return s.header.Get(headerChunk) == removed }

// blank replaces the message on subject at seq by an empty one, if it is still there.
func (c *conn) blank(ctx context.Context, stream, subject string, seq uint64) error {
	_, err := c.publish(ctx, &nats.Msg{Subject: subject, Header: nats.Header{
		headerStream: {stream},
		headerFence:  {strconv.FormatUint(seq, 10)},
		headerChunk:  {removed},
	}})
	if conflicting(err) {
		return nil
	}
	return err
}

// RemoveSnapshots removes snapshots; see eventlog.Snapshots.
func (l *Log) RemoveSnapshots(ctx context.Context, a messages.AgentID, upto uint64) error {
	if err := a.Validate(); err != nil || upto == 0 {
		return err
	}
	c, stream, prefix := l.conn(a.Partition()), l.names.Snapshots(), l.subjects.Snapshots(a)
	chunks := make(map[string]uint64) // the sequences, by subject
	err := c.list(ctx, stream, prefix+".>", func(m *delivery) {
		if m.seq <= upto && !m.isRemoved() {
			chunks[m.subject] = m.seq
		}
	})
	for subject, seq := range chunks {
		if err == nil {
			err = c.blank(ctx, stream, subject, seq)
		}
	}
	if err == nil && len(chunks) > 0 {
		err = c.write(ctx, stream, prefix+"."+removed)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// write returns once the stream's server has written what it acknowledged before, whatever the
// stream's persist_mode: it writes a purge, and all before that, when it does it.
func (c *conn) write(ctx context.Context, stream, subject string) error {
	if err := c.blank(ctx, stream, subject, 0); err != nil {
		return err
	}
	return c.purge(ctx, stream, subject, 0)
}
