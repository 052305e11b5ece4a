package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/reprise-dev/reprise/messages"
)

// ErrTooLarge is wrapped by Append's error for a frame that the log can never
// store. Nothing was stored.
var ErrTooLarge = errors.New("the frame is larger than the log takes")

// ErrInvalid is wrapped by Append's error for an entry that no log takes as it is, which is
// the caller's fault. Nothing was stored.
var ErrInvalid = errors.New("the entry is not valid")

// ErrElsewhere is wrapped by Read's error if the position to read on from is not
// in the log.
var ErrElsewhere = errors.New("the log does not hold that place")

// ErrKept is wrapped by Purge's error if the log keeps the messages for now, because to
// remove them would harm others. What is kept elsewhere of the agent can be removed.
var ErrKept = errors.New("the log keeps the messages for now")

// ErrStays is wrapped by Purge's error if messages stay that the log cannot read. With the
// next append it may drop whatever the agent has there now, so a second tombstone must follow
// the first.
var ErrStays = errors.New("messages that cannot be read stay in the log")

// ErrUnavailable is what the errors of a log are that cannot be reached now: its
// server is away, or is being connected to. What was read may be read again.
var ErrUnavailable = errors.New("the log cannot be reached now")

// ConflictError reports that the agent's newest frame is not at the position expected: another
// process owns the agent.
type ConflictError struct {
	Agent  messages.AgentID
	Expect Position
	Actual Position
}

// Error names both positions.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("append to %s expected event %d (sequence %d), the log is at event %d (sequence %d, epoch %d): somebody else owns the agent",
		e.Agent, e.Expect.Last, e.Expect.Seq, e.Actual.Last, e.Actual.Seq, e.Actual.Epoch)
}

// DamageError says that an agent's stream failed its checks, and where.
type DamageError struct {
	Agent messages.AgentID
	Seq   uint64
	// Event is the number of the first event that cannot be trusted. Zero: it is not
	// known.
	Event messages.EventNumber
	Err   error
}

// Error names the place.
func (e *DamageError) Error() string {
	if e.Event == 0 && e.Seq == 0 {
		return fmt.Sprintf("the log of %s is damaged: %v", e.Agent, e.Err)
	}
	return fmt.Sprintf("the log of %s is damaged at event %d (sequence %d): %v", e.Agent, e.Event, e.Seq, e.Err)
}

// Unwrap returns the failed check.
func (e *DamageError) Unwrap() error { return e.Err }

// Ends reports whether the frame is a tombstone: nothing before it belongs to the agent.
func Ends(f *messages.Frame) bool {
	return len(f.Events) == 1 && messages.Is(f.Events[0].EventType(), messages.EndsAgent)
}

// Forks reports whether the frame is the first one of a fork's own: the events before it are in the
// log of another agent.
func Forks(f *messages.Frame) bool {
	return len(f.Events) > 0 && messages.Is(f.Events[0].EventType(), messages.BeginsFork)
}

// Check returns why next does not follow a position: numbering, chain and epoch. A reader of an
// agent's log calls it for each frame. Behind the zero position a frame that [Ends] the agent
// may have any number: what it followed has been purged, and numbering continues behind it. So
// may one that [Forks] it: what it follows is in the log of another agent.
func Check(after Position, next Recorded) error {
	if f := next.Frame; after.Last == 0 && after.Frame == "" && (Ends(f) || Forks(f)) {
		after.Last, after.Frame, after.Digest = f.First-1, f.Prev, f.PrevDigest
	}
	return follows(after, next)
}

func follows(after Position, next Recorded) error {
	f := next.Frame
	var err error
	switch {
	case f.First != after.Last+1:
		err = fmt.Errorf("the frame begins with event %d, not %d: events are missing", f.First, after.Last+1)
	case f.Prev != after.Frame || f.PrevDigest != after.Digest:
		err = fmt.Errorf("the frame follows %q, the one before it is %q: the chain is broken", f.Prev, after.Frame)
	case f.Epoch < after.Epoch:
		err = fmt.Errorf("the frame was written under epoch %d after one of epoch %d", f.Epoch, after.Epoch)
	}
	if err != nil {
		return &DamageError{Agent: next.Agent, Seq: next.Seq, Event: after.Last + 1, Err: err}
	}
	return nil
}

// Commit appends e and, while the outcome is unknown, tries the identical
// entry again with growing pauses until it is resolved or ctx ends. After the
// end of ctx the outcome may still be unknown; the caller must not write for
// the agent again. waits, if given, are called with the reason for each retry.
func Commit(ctx context.Context, log Appender, e Entry, waits ...func(error)) (Position, error) {
	at, err := log.Append(ctx, e)
	if err == nil || final(err) {
		return at, err
	}
	return again(ctx, log, e, waits)
}

// again is Commit when the first append is not resolved. It is no part of it, for nothing of what it
// takes is needed while the log answers.
func again(ctx context.Context, log Appender, e Entry, waits []func(error)) (Position, error) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 20*time.Millisecond, time.Second
	return backoff.Retry(ctx, func() (Position, error) {
		at, err := log.Append(ctx, e)
		if err != nil && final(err) {
			err = backoff.Permanent(err)
		}
		return at, err
	}, backoff.WithBackOff(b), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		for _, w := range waits {
			w(err)
		}
	}))
}

// final reports whether an append's error settles its outcome.
func final(err error) bool {
	var conflict *ConflictError
	var damage *DamageError
	return errors.As(err, &conflict) || errors.As(err, &damage) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrInvalid)
}
