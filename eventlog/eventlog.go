package eventlog

import (
	"context"
	"iter"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Tail is the end of an agent's stream: what the next append must follow. The
// zero value is the tail of an agent that has no frame.
type Tail struct {
	// Seq is the log's own sequence of the newest message on the agent's
	// subject: a hint to find it, and the fence. Copies and restores renumber.
	Seq uint64
	// Frame and Digest name the newest frame.
	Frame  messages.FrameID
	Digest messages.Digest
	// Last is the number of the newest event.
	Last messages.EventNumber
	// Epoch is the one that the newest frame was written under.
	Epoch messages.Epoch
	// Time is the newest frame's.
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

// Tail is the tail of the stream just after the frame.
func (r Recorded) Tail() Tail {
	f := r.Frame
	return Tail{Seq: r.Seq, Frame: f.ID, Digest: r.Digest, Last: f.Last(), Epoch: f.Epoch, Time: f.Time}
}

// Summary is what headers say of an agent as of a frame, so that lists and
// recovery need not decode it.
type Summary struct {
	Phase messages.AgentPhase
	Turn  messages.TurnID // running or paused; else empty
	// Open says that the agent owes work: it must be activated by whoever owns
	// its partition, even if nobody asks.
	Open bool
	// Due is its next timer. Zero: none.
	Due time.Time
	// Waiting is how many of its calls wait for a person.
	Waiting int
	// Failed is why the newest turn that ended has failed, as in turn.failed. Empty: it
	// has not, or none has ended.
	Failed string
	// Replies reports whether the frame has facts for subjects that inputs have named.
	Replies bool
}

// Head is the newest frame of one agent as its headers tell it.
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
	// Expect is the tail that the frame must follow.
	Expect Tail
	// Frame's ID never changes: the same entry tried again is the same frame. It is not
	// changed any more: the log may give it to readers.
	Frame *messages.Frame
	// Bytes is Frame as messages.EncodeFrame wrote it. The log keeps no
	// reference to it after Append returns.
	Bytes   []byte
	Summary Summary
}

// Appender writes.
type Appender interface {
	// Append stores the entry's frame if the agent's tail is still Expect, and
	// returns the new tail. If that very frame is already the tail it returns
	// that tail.
	//
	// A *ConflictError says that somebody else wrote: the caller must stop
	// acting for the agent. A *DamageError says that the frame does not follow
	// Expect, which is the caller's fault; nothing was stored. Any other error
	// but [ErrTooLarge] and [ErrInvalid] leaves the outcome unknown: only the identical
	// entry may be tried next ([Commit] does so). Safe for concurrent use.
	Append(ctx context.Context, e Entry) (Tail, error)
}

// Reader reads one agent.
type Reader interface {
	// Read yields the agent's frames in order, from the one that holds event
	// from (or the first, if from is 0 or 1), up to what was the tail when the
	// call began or later. A missing agent is empty, not an error. Numbering,
	// chain and checksums are verified from there on, and with from 0 or 1 from the
	// first frame on; the sequence holds at most one non-nil
	// error, a *DamageError or a failure to read, and ends with it.
	// Safe for concurrent use.
	Read(ctx context.Context, a messages.AgentID, from messages.EventNumber) iter.Seq2[Recorded, error]
	// Tail is the agent's newest tail, read from the one place that cannot be
	// stale.
	Tail(ctx context.Context, a messages.AgentID) (Tail, error)
}

// Log is what an owner of agents needs of their logs. What reads one agent needs only
// the Reader, what reads all agents only the Feed.
type Log interface {
	Appender
	Reader
	Resumer
	Crowds
	Finder
	Purger
}
