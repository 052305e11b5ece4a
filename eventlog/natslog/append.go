package natslog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
)

// Append stores a frame in one publish; see eventlog.Appender.
//
// A conflict is decided by what the leader holds. If the newest frame is the
// one expected and only foreign messages or a renumbering moved the fence, the
// append continues behind the new fence.
func (l *Log) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if err := l.admit(ctx, e); err != nil {
		return eventlog.Position{}, err
	}
	partition := e.Agent.Partition()
	if l.held[Shard(partition)].Load() {
		return eventlog.Position{}, fmt.Errorf("append frame %s to %s: %w", e.Frame.ID, e.Agent, errHeld)
	}
	c, p := l.conn(partition), publications.Get().(*publication)
	defer p.release()
	p.fill(l.stream[partition], e)
	p.msg.Subject = l.subject(e.Agent, partition)

	fence := e.Expect.Seq
	for range 3 {
		p.fence[0] = strconv.FormatUint(fence, 10)
		seq, err := c.publish(ctx, &p.msg)
		if err == nil {
			tail := e.Position(seq)
			l.appended(e, tail)
			return tail, nil
		}
		if !refused(err) {
			return eventlog.Position{}, fmt.Errorf("append frame %s to %s, outcome unknown: %w", e.Frame.ID, e.Agent, err)
		}
		actual, resolved, err := l.resolve(ctx, e, err)
		if resolved || err != nil {
			return actual, err
		}
		if actual.Seq == fence { // the leader still has an earlier one in hand
			break
		}
		fence = actual.Seq
	}
	return eventlog.Position{}, fmt.Errorf("append frame %s to %s was refused though its tail is as expected: try it again", e.Frame.ID, e.Agent)
}

// appended notes that e is stored.
func (l *Log) appended(e eventlog.Entry, tail eventlog.Position) {
	l.ack(e.Agent.Partition(), tail.Seq)
	l.own[Shard(e.Agent.Partition())].add(e, tail)
}

// errHeld is why nothing is appended. The append may be tried again.
const errHeld = unavailable("its stream must be checked for losses before anything is appended to it")

// Hold has appends to a stream of the log fail, or succeed again. What is on its way is
// not held up.
func (l *Log) Hold(shard int, held bool) { l.held[shard].Store(held) }

func (l *Log) admit(ctx context.Context, e eventlog.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.Validate(); err != nil {
		return err
	}
	if len(e.Bytes) > l.limit {
		return l.tooLarge(e, l.limit)
	}
	return nil
}

func (l *Log) tooLarge(e eventlog.Entry, limit int) error {
	return fmt.Errorf("frame %s of %s has %d bytes, this server takes up to %d: %w", e.Frame.ID, e.Agent, len(e.Bytes), limit, eventlog.ErrTooLarge)
}

// refused reports whether the server (or the client before it) has stored nothing
// this time and the tail shows why.
func refused(err error) bool {
	if errors.Is(err, nats.ErrMaxPayload) {
		return true
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case codeWrongSequence, codeWrongSequenceBusy, codeMessageTooLarge, codeHeaderTooLarge:
		return true
	}
	return false
}

// The server's error codes that decide something.
const (
	codeWrongSequence     jetstream.ErrorCode = 10071
	codeWrongSequenceBusy jetstream.ErrorCode = 10164 // the same, or an earlier message is in hand
	codeMessageTooLarge   jetstream.ErrorCode = 10054
	codeHeaderTooLarge    jetstream.ErrorCode = 10097
	codeNoMessage         jetstream.ErrorCode = 10037
	codeStoreFailed       jetstream.ErrorCode = 10077 // a limit is reached, of the subject or the stream, or the disk failed
	codePurgeFailed       jetstream.ErrorCode = 10051
)

// resolve asks the leader what became of e after a refusal. It is resolved if
// e's frame is the tail or another writer's is. Otherwise the newest frame is
// the expected one, with its fence.
func (l *Log) resolve(ctx context.Context, e eventlog.Entry, refusal error) (actual eventlog.Position, resolved bool, err error) {
	actual, err = l.Head(ctx, e.Agent)
	if err != nil {
		return eventlog.Position{}, false, fmt.Errorf("append frame %s to %s, outcome unknown: %w (refused before: %w)", e.Frame.ID, e.Agent, err, refusal)
	}
	switch mine := e.Position(actual.Seq); {
	case actual.Frame == mine.Frame && actual.Digest == mine.Digest:
		l.appended(e, mine)
		return mine, true, nil
	case actual.Frame != e.Expect.Frame || actual.Digest != e.Expect.Digest:
		if actual.Last < e.Expect.Last && l.doubt != nil { // what we follow was acknowledged
			l.doubt(Shard(e.Agent.Partition()))
		}
		return eventlog.Position{}, true, &eventlog.ConflictError{Agent: e.Agent, Expect: e.Expect, Actual: actual}
	case !conflicting(refusal):
		return eventlog.Position{}, true, fmt.Errorf("append frame %s to %s: %w: %w", e.Frame.ID, e.Agent, eventlog.ErrTooLarge, refusal)
	}
	return actual, false, nil
}

func conflicting(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == codeWrongSequence || api.ErrorCode == codeWrongSequenceBusy)
}
