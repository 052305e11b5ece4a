package eventlog

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Position is a place in an agent's log: that of a frame. The newest one's is what the next
// append must follow. The zero value is the position before the first frame.
type Position struct {
	// Seq is the log's own sequence of the frame: a hint to find it, and the fence of an
	// append. Copies and restores renumber.
	Seq uint64
	// Frame and Digest name the frame.
	Frame  messages.FrameID
	Digest messages.Digest
	// Last is the number of its last event.
	Last messages.EventNumber
	// Epoch is the one that it was written under.
	Epoch messages.Epoch
	// Time is the frame's.
	Time time.Time
}

// Recorded is a frame with its place in the log.
type Recorded struct {
	Agent messages.AgentID
	Seq   uint64
	Frame *messages.Frame
	// Digest is the frame's own.
	Digest messages.Digest
	// Size is the frame's, in bytes as stored, headers excluded.
	Size int
}

// Position returns the frame's position.
func (r Recorded) Position() Position {
	f := r.Frame
	return Position{Seq: r.Seq, Frame: f.ID, Digest: r.Digest, Last: f.Last(), Epoch: f.Epoch, Time: f.Time}
}

// Upto returns the frame without its events behind number last, which it holds or which is behind
// it. Its digest stays that of the whole.
func (r Recorded) Upto(last messages.EventNumber) Recorded {
	if r.Frame.Last() > last {
		f := *r.Frame
		f.Events = slices.Clip(f.Events[:last-f.First+1])
		r.Frame = &f
	}
	return r
}

// Summary is what headers say of an agent as of a frame, so that lists and
// recovery need not decode it.
type Summary struct {
	Phase messages.AgentPhase
	Turn  messages.TurnID // running or paused; else empty
	// Open reports whether the agent owes work: the owner of its
	// partition must activate it, unasked.
	Open bool
	// Due is its next timer. Zero: none.
	Due time.Time
	// Waiting is how many of its calls wait for a person.
	Waiting int
	// Failed is why the newest turn that ended has failed, as in turn.failed. Empty: it
	// has not, or none has ended.
	Failed string
	// Replies reports whether the frame has facts for subjects that inputs have named, or an
	// answer is streamed to a caller whose endpoint may go: a taker activates the agent.
	Replies bool
}

// Head is the newest frame of one agent as its headers describe it.
type Head struct {
	Agent messages.AgentID
	Seq   uint64
	ID    messages.FrameID // the frame's
	Time  time.Time        // when the log stored it, or soon after
	Epoch messages.Epoch
	First messages.EventNumber
	Last  messages.EventNumber
	Summary
	// Foreign says that the message is no frame of ours; only Agent, Seq and
	// Time have a meaning then.
	Foreign bool
}

// Entry is a frame about to be appended.
type Entry struct {
	Agent messages.AgentID
	// Expect is the position that the frame must follow.
	Expect Position
	// Frame's ID never changes: the same entry tried again is the same frame. It is not
	// changed any more: the log may pass it to readers.
	Frame *messages.Frame
	// Bytes is Frame as messages.EncodeFrame wrote it. The log keeps no
	// reference to it after Append returns.
	Bytes   []byte
	Summary Summary
}

// Appender writes.
type Appender interface {
	// Append stores the entry's frame if the agent's newest frame is still at Expect, and
	// returns its position. If that very frame is already the newest it returns
	// that position.
	//
	// A *ConflictError means that another writer was first: the caller must stop
	// acting for the agent. A *DamageError means that the frame does not follow
	// Expect, which is the caller's fault; nothing was stored. Any other error
	// but [ErrTooLarge] and [ErrInvalid] leaves the outcome unknown: only the identical
	// entry may be tried next ([Commit] does so). Safe for concurrent use.
	Append(ctx context.Context, e Entry) (Position, error)
}

// Range says which of an agent's frames to read. The zero value is all of them.
type Range struct {
	// After is where to read on, as [Recorded.Position] or Append returned it. The zero value is
	// the beginning of the log; one that has Last alone is the frame that holds that event.
	After Position
	// Seen reports whether After is known to be in this log: the reader has read it there, or the
	// owner has named it. What follows a position is verified against that, but neither it nor a
	// frame before the first one need be looked at.
	Seen bool
	// Upto is the newest frame to read, as ReadAhead yielded it. Nil: what was the newest when
	// the call began, or a later one.
	Upto *Newest
}

// From returns the frames from the one that holds event n on; all of them if n is 0 or 1.
func From(n messages.EventNumber) Range {
	if n <= 1 {
		return Range{}
	}
	return Range{After: Position{Last: n - 1}}
}

// Behind returns the frames behind a position; all of them if that is zero.
func Behind(after Position) Range { return Range{After: after} }

// Event returns the event from which to read where After is not a position.
func (r Range) Event() messages.EventNumber { return r.After.Last + 1 }

// Reader reads one agent.
type Reader interface {
	// Read yields frames of the agent in order. A missing agent is empty, not an error. Behind
	// a position, the time that it takes depends on how many there are to yield, and not on the
	// length of the history. With Last alone the event is looked for first, in a few requests
	// more the longer the history is; where a foreign message or damage is in the way of that,
	// the history is read through.
	//
	// If After has a frame, what follows is verified against it: numbering, chain and
	// checksums. If the log does not hold that frame at its sequence with its digest, the only
	// thing yielded is an error that wraps [ErrElsewhere]: the log was restored, or what After
	// came from is not to be trusted. Else verifying begins with the first frame or, from a
	// later event on, at most one frame before the one that holds it.
	//
	// The sequence holds at most one non-nil error, a *DamageError or a failure to read, and
	// ends with it. Safe for concurrent use.
	Read(ctx context.Context, a messages.AgentID, r Range) iter.Seq2[Recorded, error]
	// Head returns the position of the agent's newest frame by its headers, read from the one
	// place that cannot be stale. It is there for a frame that fails its checks too. If
	// foreign messages follow that frame, Seq is the newest message's.
	Head(ctx context.Context, a messages.AgentID) (Position, error)
}

// Newest is the newest frame of an agent, read ahead for a Read that ends with it.
type Newest struct {
	Agent messages.AgentID
	// Seq is the frame's sequence, Last the number of its last event, Size the frame's
	// in bytes as stored.
	Seq  uint64
	Last messages.EventNumber
	Size int
	// Source is the log's own: what Read continues from.
	Source any
}

// Log is what an owner of agents needs of their logs. What reads one agent needs only
// the Reader, what reads all agents only the Feed.
type Log interface {
	Appender
	Reader
	// ReadAhead yields the newest frames of agents of one partition, in no order, with few
	// requests: many come at once when the partition gets a new owner. It leaves out agents
	// without a frame, or with a foreign message behind the newest one. An agent whose
	// log grows meanwhile may come twice. A frame may be old, for it may come from any
	// copy of the log: what is read up to it is sure only once a frame has
	// been appended behind it, or Head has been asked. The sequence ends with its only
	// error. Safe for concurrent use.
	ReadAhead(ctx context.Context, p messages.Partition, agents []messages.AgentID) iter.Seq2[Newest, error]
	// Purge removes every message on the agent's log subject whose sequence is
	// below before. The newest message must stay: it is the fence. It fails,
	// having removed nothing, if that is not so. If nothing is there, that is no
	// error. Purging again changes nothing. Safe for concurrent use.
	Purge(ctx context.Context, a messages.AgentID, before uint64) error
}

// Removed reports whether the agent's frame that began with event first at that sequence,
// which was there, is not in the log any more: a delete has purged it.
func Removed(ctx context.Context, log Reader, a messages.AgentID, seq uint64, first messages.EventNumber) (bool, error) {
	rec, err := First(log.Read(ctx, a, From(first)))
	if damage := new(DamageError); errors.As(err, &damage) {
		return false, nil
	}
	return rec.Seq != seq, err
}

// First returns the first frame of those that are read. Its Frame is nil if there is none.
func First(frames iter.Seq2[Recorded, error]) (Recorded, error) {
	for rec, err := range frames {
		return rec, err
	}
	return Recorded{}, nil
}
