package encrypted

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Log is a log that encrypts the data of agents, with what is kept beside it. Make it with
// [New]. Safe for concurrent use.
type Log struct {
	plain
	log  inner
	keys *Keys
	why  atomic.Pointer[error] // for which writes are refused
}

var _ eventlog.Feed = (*Log)(nil)

// plain are the methods of a log that neither take nor return what is encrypted. Log has a
// method of its own for each of the others: without one it does not compile.
type plain interface {
	ReadAhead(ctx context.Context, p messages.Partition, agents []messages.AgentID) iter.Seq2[eventlog.Newest, error]
	Purge(ctx context.Context, a messages.AgentID, before uint64) error
	Shards() int
	ShardEnd(ctx context.Context, shard int) (uint64, error)
	ListBlobs(ctx context.Context, a messages.AgentID) iter.Seq2[messages.Blob, error]
	RemoveBlobs(ctx context.Context, a messages.AgentID, upto uint64, hashes ...messages.Digest) error
	LastBlob(ctx context.Context, a messages.AgentID) (uint64, error)
	ListSnapshots(ctx context.Context, a messages.AgentID) ([]string, error)
	RemoveSnapshots(ctx context.Context, a messages.AgentID, upto uint64) error
	LastSnapshot(ctx context.Context, a messages.AgentID) (uint64, error)
}

type inner struct {
	eventlog.Store
	eventlog.Feed
}

// New returns a log that encrypts what is written to a store under the keys. feed reads the
// store's log. With nil keys nothing is encrypted, and what is encrypted cannot be read.
func New(store eventlog.Store, feed eventlog.Feed, keys *Keys) *Log {
	in := inner{store, feed}
	return &Log{plain: in, log: in, keys: keys}
}

// Store returns the log with what is kept beside it. Definitions are not encrypted.
func (l *Log) Store() eventlog.Store {
	return eventlog.Store{Log: l, Blobs: l, Snapshots: l, Definitions: l.log.Definitions}
}

// Close refuses later writes with why. Writes in flight may still be stored. Reads work as
// before.
func (l *Log) Close(why error) { l.why.Store(&why) }

// closed returns the error of a write after Close.
func (l *Log) closed() error {
	if why := l.why.Load(); why != nil {
		return *why
	}
	return nil
}

// Overhead is more than encryption adds to a frame of the usual number of events, in bytes.
const Overhead = 8 << 10

// public reports whether all of the frame's events may be stored in clear.
func public(f *messages.Frame) bool {
	return !slices.ContainsFunc(f.Events, func(ev messages.Event) bool {
		return !messages.Is(ev.EventType(), messages.Public)
	})
}

// Append encrypts the frame and stores it; see eventlog.Appender. If the key cannot be read
// nothing was stored, and the same entry may be tried again.
func (l *Log) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if err := l.closed(); err != nil {
		return eventlog.Position{}, fmt.Errorf("append frame %s to %s: %w", e.Frame.ID, e.Agent, err)
	}
	if l.keys == nil || public(e.Frame) {
		return l.log.Append(ctx, e)
	}
	key, err := l.keys.writing(ctx, e.Agent)
	if err != nil {
		return eventlog.Position{}, fmt.Errorf("append frame %s to %s: %w", e.Frame.ID, e.Agent, err)
	}
	if e.Bytes, err = messages.EncryptFrame(e.Agent, e.Frame, key.id, key); err != nil {
		return eventlog.Position{}, err
	}
	stored := *e.Frame // readers of the log that are given it as it is see that it is encrypted there
	stored.KeyID, e.Frame = key.id, &stored
	return l.log.Append(ctx, e)
}

// Head returns the position of the agent's newest frame; see eventlog.Reader. The key of the next
// append is read again, since a former owner may have deleted the agent.
func (l *Log) Head(ctx context.Context, a messages.AgentID) (eventlog.Position, error) {
	if l.keys != nil {
		l.keys.forget(a)
	}
	return l.log.Head(ctx, a)
}

// Read yields the agent's frames, decrypted; see eventlog.Reader. The error for a frame that
// cannot be decrypted is a *eventlog.DamageError, which wraps ErrNoKey or ErrOff where that is
// why; for an agent that is deleted while it is read it is messages.Unavailable. After a read of
// what was read ahead, as after Head, the key of the next append is read again.
func (l *Log) Read(ctx context.Context, a messages.AgentID, r eventlog.Range) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		if l.keys != nil && r.Upto != nil {
			defer l.keys.forget(a)
		}
		l.decrypted(ctx, l.log.Read(ctx, a, r))(yield)
	}
}

func (l *Log) decrypted(ctx context.Context, frames iter.Seq2[eventlog.Recorded, error]) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for rec, err := range frames {
			if err == nil {
				if rec.Frame, err = l.decrypt(ctx, rec.Agent, rec.Seq, rec.Frame); err != nil {
					if errors.Is(err, messages.ErrShredded) {
						err = messages.Refuse(messages.Unavailable, "%s was deleted while it was read: ask again", rec.Agent)
					}
					rec = eventlog.Recorded{}
				}
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// decrypt returns a frame as it was before it was encrypted.
func (l *Log) decrypt(ctx context.Context, a messages.AgentID, seq uint64, f *messages.Frame) (*messages.Frame, error) {
	if !f.Encrypted() {
		return f, nil
	}
	damaged := func(err error) error {
		return &eventlog.DamageError{Agent: a, Seq: seq, Event: f.First, Err: err}
	}
	if l.keys == nil {
		return nil, damaged(ErrOff)
	}
	key, err := l.keys.reading(ctx, a, f.KeyID)
	if errors.Is(err, ErrNoKey) {
		// A delete removes frames before the key: this one was read before it was removed.
		gone, unknown := eventlog.Removed(ctx, l.log, a, seq, f.First)
		switch {
		case unknown != nil:
			return nil, fmt.Errorf("read event %d of %s: %w", f.First, a, unknown)
		case gone:
			return nil, fmt.Errorf("read event %d of %s: %w", f.First, a, messages.ErrShredded)
		}
		return nil, damaged(err)
	}
	if err != nil {
		return nil, fmt.Errorf("read event %d of %s: %w", f.First, a, err)
	}
	plain, err := f.Decrypt(a, key)
	if err != nil {
		return nil, damaged(err)
	}
	return plain, nil
}

// ReadShard yields what the shard holds; see eventlog.Feed. Frames are decrypted on demand;
// the error for one whose agent has been deleted since wraps messages.ErrShredded.
func (l *Log) ReadShard(ctx context.Context, shard int, after uint64) iter.Seq2[eventlog.Stored, error] {
	return l.opened(ctx, l.log.ReadShard(ctx, shard, after))
}

// ReadPartition yields what the partition holds, on the terms of ReadShard.
func (l *Log) ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[eventlog.Stored, error] {
	return l.opened(ctx, l.log.ReadPartition(ctx, p, after))
}

// Follow yields the heads of a partition; see eventlog.Feed. The frames that come with them are
// decrypted on demand, also after ctx has ended.
func (l *Log) Follow(ctx context.Context, p messages.Partition) iter.Seq2[eventlog.Stored, error] {
	return l.opened(context.WithoutCancel(ctx), l.log.Follow(ctx, p))
}

// opened yields messages whose frames are decrypted on demand.
func (l *Log) opened(ctx context.Context, all iter.Seq2[eventlog.Stored, error]) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		for s, err := range all {
			if decode := s.Frame; err == nil && decode != nil {
				s.Frame = func() (*messages.Frame, error) {
					f, err := decode()
					if err != nil {
						return nil, err
					}
					return l.decrypt(ctx, s.Agent, s.Seq, f)
				}
			}
			if !yield(s, err) {
				return
			}
		}
	}
}
