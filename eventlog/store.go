package eventlog

import (
	"context"
	"io"
	"iter"
	"math"

	"github.com/reprise-dev/reprise/messages"
)

// Store is all that a node stores of its agents. Its parts may be of different kinds.
type Store struct {
	Log
	Blobs
	Snapshots
	Definitions
}

// Blobs keeps payloads that are too large for a frame, by agent and hash. Equal
// payloads of one agent are kept once; two agents share none. Safe for
// concurrent use.
type Blobs interface {
	// PutBlob stores what r holds from where it stands, in chunks, and returns once
	// all of it is on disk. r may be read twice, first for its hash. Storing a blob
	// again changes nothing; after an error it continues with what is missing.
	PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error)
	// Blob streams a blob. messages.NotFound if it is not stored; a reader whose
	// last Read does not match the hash or the size returns messages.Damaged in
	// place of io.EOF. The reader must be closed.
	Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error)
	// ListBlobs yields the agent's blobs in no order, each once, with the size that
	// is stored. Chunks of one that was never stored whole count as a blob.
	ListBlobs(ctx context.Context, a messages.AgentID) iter.Seq2[messages.Blob, error]
	// RemoveBlobs removes those named, or all of the agent's if none is, as far as they
	// were stored at or below sequence upto. Removing them again changes nothing.
	RemoveBlobs(ctx context.Context, a messages.AgentID, upto uint64, hashes ...messages.Digest) error
	// LastBlob returns the sequence at which a blob was last stored, of this agent or of
	// others: all that is stored later has a greater one.
	LastBlob(ctx context.Context, a messages.AgentID) (uint64, error)
}

// Skipper is what a reader of a blob may be, too: one that need not read what its
// user passes over.
type Skipper interface {
	// Skip moves n bytes further. What lies between is not checked, so at the end
	// the size is held against the blob's, not the hash of the whole.
	Skip(n int64) error
}

// Skip passes over the next n bytes of a blob.
func Skip(r io.Reader, n int64) error {
	if s, ok := r.(Skipper); ok {
		return s.Skip(n)
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}

// Snapshots keeps what folds have made of an agent's events. It is a cache: what
// is kept may be gone at any time and nothing is lost but time. Names are
// tokens as in messages.ValidateToken. Safe for concurrent use.
type Snapshots interface {
	// PutSnapshot replaces the agent's snapshot of that name, in chunks where it is
	// large. A crash in the middle leaves none.
	PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error
	// Snapshot returns the newest, or one that was a moment ago; nil if there is none
	// or what is there is not whole.
	Snapshot(ctx context.Context, a messages.AgentID, name string) ([]byte, error)
	// ListSnapshots returns the names of all that are kept of the agent, sorted.
	ListSnapshots(ctx context.Context, a messages.AgentID) ([]string, error)
	// RemoveSnapshots removes all of the agent's that were stored at or below sequence
	// upto. Removing them again changes nothing.
	RemoveSnapshots(ctx context.Context, a messages.AgentID, upto uint64) error
	// LastSnapshot is LastBlob for snapshots.
	LastSnapshot(ctx context.Context, a messages.AgentID) (uint64, error)
}

// All is every sequence, for RemoveBlobs and RemoveSnapshots.
const All = math.MaxUint64

// Definitions keeps definitions by their hash, once each. Safe for concurrent use.
type Definitions interface {
	// PutDefinition stores a definition and returns its hash; storing it again
	// changes nothing.
	PutDefinition(ctx context.Context, definition []byte) (messages.Digest, error)
	// Definition returns a stored definition; messages.NotFound if there is none.
	Definition(ctx context.Context, hash messages.Digest) ([]byte, error)
}

// Feed reads the logs of all agents together, as owners of partitions and projections of
// all agents need it. The log is made of a fixed number of shards; all frames of an agent
// are in one of them, in order.
type Feed interface {
	// Follow yields the newest head of every agent in the partition, and if that is
	// foreign the one of its newest frame too, then one with a zero Agent, which ends
	// what was stored before the call, then every new head soon after it is stored,
	// until ctx ends or the log fails; its error comes last. What is at hand of a new
	// message comes with its head; a nil Frame says nothing. Safe for concurrent use.
	Follow(ctx context.Context, p messages.Partition) iter.Seq2[Stored, error]
	// Shards is how many there are, numbered from 0.
	Shards() int
	// ShardEnd is the sequence of the newest message of a shard; 0 if it is empty.
	ShardEnd(ctx context.Context, shard int) (uint64, error)
	// ReadShard yields what the shard holds behind sequence after, in order, then
	// what comes, soon after it is stored, until ctx ends. A Stored with a zero Agent
	// reports that all messages stored so far were yielded: once at the end of those
	// stored before the call, then each time that the end is reached again. Its Seq is
	// that of the newest message, which was yielded or, if it is on no agent's subject
	// or was removed, passed over. Its error comes last; it wraps [ErrElsewhere] if
	// after is beyond the shard's end: the log was restored.
	ReadShard(ctx context.Context, shard int, after uint64) iter.Seq2[Stored, error]
	// ReadPartition yields what the partition holds behind sequence after, in order, and ends
	// where nothing more is there. Its error comes last; it wraps [ErrElsewhere] as that of
	// ReadShard.
	ReadPartition(ctx context.Context, p messages.Partition, after uint64) iter.Seq2[Stored, error]
}

// Stored is a message of a shard. Foreign ones come with their Head alone,
// but for a frame whose headers cannot be read: its Frame says so.
type Stored struct {
	Head
	Types []string // of the frame's events, as Entry.Types has them
	// Frame decodes the frame, which must not be changed; it checks the checksum, not the
	// chain. An error is a *DamageError.
	Frame func() (*messages.Frame, error)
	// Digest is the frame's own, of the bytes that are stored.
	Digest func() messages.Digest
}
