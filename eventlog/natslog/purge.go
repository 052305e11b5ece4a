package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Purge takes history away; see eventlog.Log. An error may have come after the
// messages were removed: purge again.
//
// How many messages it removes is recorded outside the stream before and after, so
// that they are distinguished from messages that were lost.
func (l *Log) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	if err := l.purgeable(ctx, Shard(a.Partition())); err != nil {
		return err
	}
	stays := l.purgeBelow(ctx, a, before)
	if stays != nil && !errors.Is(stays, eventlog.ErrStays) {
		return stays
	}
	return errors.Join(l.settleQuarantined(ctx, a, before), stays)
}

// purgeable returns why nothing must be purged from a stream: it is known to hold messages
// that the server cannot read. Where a purge makes one of them the first of the block that
// is written to, nats-server 2.15.2 drops all others of that block at the next append.
func (l *Log) purgeable(ctx context.Context, shard int) error {
	if _, err := l.baseOf(ctx, shard); err != nil {
		return err
	}
	s, err := l.Scrubbed(ctx, shard)
	if err != nil {
		return err
	}
	n := s.More
	for _, u := range s.Bad {
		if !u.Given {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%w: %w", eventlog.ErrKept, messages.Refuse(messages.Unavailable, "nothing is purged from stream %s, for the NATS server cannot read %d messages of it and would then drop others: stop it and run `reprise doctor --data DIR --quarantine`, or restore a backup", l.names.log(shard), n))
	}
	return nil
}

func (l *Log) purgeBelow(ctx context.Context, a messages.AgentID, before uint64) error {
	newest, err := l.newest(ctx, a)
	switch {
	case err != nil:
		return err
	case newest == nil || before <= 1:
		return nil
	case newest.seq < before:
		return fmt.Errorf("purge %s below sequence %d: its newest message, at %d, must stay, for it is the fence", a, before, newest.seq)
	}
	p := a.Partition()
	l.marks.marks[p].forget() // another node may have owned the partition meanwhile
	for {
		if err := l.finishPurge(ctx, p); err != nil {
			return err
		}
		n, err := l.below(ctx, p, newest.subject, before)
		if err != nil || n == 0 {
			return err
		}
		mine := purging{newest.subject, before, n}
		m, err := l.changeMark(ctx, p, "", func(m *mark) bool {
			if m.Purge != nil { // of another agent, or of an owner before
				return false
			}
			m.Purge = &mine
			return true
		})
		if err != nil {
			return fmt.Errorf("record that %s is to be purged: %w", a, err)
		}
		if *m.Purge != mine {
			continue
		}
		if err := l.finishPurge(ctx, p); err != nil {
			return err
		}
		if n, err = l.below(ctx, p, newest.subject, before); err == nil && n > 0 {
			err = fmt.Errorf("purge %s: %w (%d)", a, eventlog.ErrStays, n)
		}
		return err
	}
}

// finishPurge sees a purge through that is on record, and records that it is done.
func (l *Log) finishPurge(ctx context.Context, p messages.Partition) error {
	m, err := l.changeMark(ctx, p, "", func(*mark) bool { return false })
	if err != nil || m.Purge == nil {
		return err
	}
	if err := l.conn(p).purge(ctx, l.stream[p], m.Purge.Subject, m.Purge.Before); err != nil {
		return err
	}
	_, err = l.changeMark(ctx, p, "", func(now *mark) bool {
		if now.Purge == nil || *now.Purge != *m.Purge {
			return false // another owner has seen it through
		}
		now.Purged, now.Purge = now.Purged+m.Purge.Messages, nil
		return true
	})
	if err != nil {
		return fmt.Errorf("record that %d messages on %s are purged: %w", m.Purge.Messages, m.Purge.Subject, err)
	}
	return nil
}

// below counts the messages on a subject below a sequence, as its leader has them: a consumer may
// be on a copy that lags. What is appended meanwhile is above it. Each message from the sequence on
// takes a request, and few stay where a purge ends.
func (l *Log) below(ctx context.Context, p messages.Partition, subject string, before uint64) (uint64, error) {
	c := l.conn(p)
	for range 3 {
		total, err := c.count(ctx, l.stream[p], subject)
		if err != nil {
			return 0, err
		}
		rest := 0
		for seq := before; rest <= total; rest++ {
			m, err := c.get(ctx, l.stream[p], place{Seq: seq, Next: subject})
			if err != nil {
				return 0, fmt.Errorf("count the messages on %s below sequence %d: %w", subject, before, err)
			}
			if m == nil {
				break
			}
			seq = m.seq + 1
		}
		again, err := c.count(ctx, l.stream[p], subject)
		if err != nil {
			return 0, err
		}
		if total == again && total >= rest {
			return uint64(total - rest), nil
		}
	}
	return 0, messages.Refuse(messages.Unavailable, "the messages on %s below sequence %d cannot be counted while it is written to: purge again", subject, before)
}

// RemoveBlobs removes blobs; see eventlog.Blobs.
func (l *Log) RemoveBlobs(ctx context.Context, a messages.AgentID, upto uint64, hashes ...messages.Digest) error {
	if err := a.Validate(); err != nil || upto == 0 {
		return err
	}
	stream, prefix := l.names.Blobs(a.Partition()), l.subjects.Blobs(a)
	filters := []string{prefix + ".>"}
	if len(hashes) > 0 {
		filters = filters[:0]
	}
	for _, hash := range hashes {
		if err := messages.ValidateToken("name", string(hash)); err != nil {
			return err
		}
		filters = append(filters, prefix+"."+string(hash)+".>")
	}
	for _, filter := range filters {
		// The sequence behind the last one is 0, which is every sequence to purge.
		if err := l.conn(a.Partition()).purge(ctx, stream, filter, upto+1); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return nil
}

// LastBlob returns the last sequence; see eventlog.Blobs.
func (l *Log) LastBlob(ctx context.Context, a messages.AgentID) (uint64, error) {
	return l.last(ctx, a, l.names.Blobs(a.Partition()))
}

// LastSnapshot returns the last sequence; see eventlog.Snapshots.
func (l *Log) LastSnapshot(ctx context.Context, a messages.AgentID) (uint64, error) {
	return l.last(ctx, a, l.names.Snapshots())
}

// last returns the last sequence of a stream; 0 for one that was removed, of which nothing is left.
func (l *Log) last(ctx context.Context, a messages.AgentID, stream string) (uint64, error) {
	if err := a.Validate(); err != nil {
		return 0, err
	}
	info, err := l.conn(a.Partition()).info(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	return info.State.LastSeq, err
}

// purgeWait is how long a purge may take. It looks at every block of a stream
// that holds the subject.
const purgeWait = time.Minute

// purge removes what the filter matches below sequence before, or all of it if
// that is 0.
func (c *conn) purge(ctx context.Context, stream, filter string, before uint64) error {
	ask, err := json.Marshal(struct {
		Filter string `json:"filter"`
		Before uint64 `json:"seq,omitempty"`
	}{filter, before})
	if err != nil {
		return err
	}
	answer, err := c.requestWithin(ctx, &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + stream, Data: ask}, purgeWait)
	if err != nil {
		return fmt.Errorf("purge %s in %s: %w", filter, stream, err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Success bool                `json:"success"`
	}
	err = json.Unmarshal(answer.Data, &got)
	switch {
	case err != nil:
	case got.Error != nil:
		err = got.Error
	case !got.Success:
		err = fmt.Errorf("unreadable answer %q", answer.Data)
	}
	if err != nil {
		return fmt.Errorf("purge %s in %s: %w", filter, stream, err)
	}
	return nil
}
