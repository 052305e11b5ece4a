package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// acknowledged is what the server is sent when an agent has a message.
var acknowledged = []byte("+ACK")

// terminated returns what the server is sent when a message is a dead letter.
func terminated(why *messages.Error) []byte {
	return []byte("+TERM " + messages.OneLine(why.Message))
}

// settle takes a message out of the queue, if the server receives it.
func (b *Inbox) settle(at place, how []byte) {
	if err := b.cfg.Conn.Publish(at.settle, how); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		b.cfg.Logger.Warn("a message was settled but is in the queue; it will come again and change nothing", "sequence", at.seq, "error", err)
	}
}

// end takes a message that is a dead letter out of the queue, and returns when no other
// owner can be given it. After an error, that of ctx or of a closed connection,
// one may be.
func (b *Inbox) end(ctx context.Context, msg *message, how []byte) error {
	return persist(ctx, func() error {
		err := b.ended(ctx, msg, how)
		if errors.Is(err, nats.ErrConnectionClosed) {
			err = backoff.Permanent(err)
		}
		return err
	}, func(err error, _ time.Duration) {
		b.cfg.Logger.Warn("a dead letter was stored but its message is not known to be removed; it is tried again", "sequence", msg.seq, "error", err)
	})
}

// ended is one attempt to end a message. A stream with copies removes it only after its consumer has
// confirmed the end, and may lose that with its leader: so it is looked for, and removed. Where our
// consumer answers even then, the next owner's is made later. What is before the message on
// its subject is settled. It is not simply removed first: a purge looks at every message that the
// consumer waits for.
func (b *Inbox) ended(ctx context.Context, msg *message, how []byte) error {
	confirm := func() error {
		ctx, cancel := context.WithTimeout(ctx, insistEach)
		defer cancel()
		_, err := b.cfg.Conn.RequestWithContext(ctx, msg.settle, how)
		return err
	}
	if err := confirm(); err != nil {
		return err
	}
	_, err := b.stream.GetMsg(ctx, msg.seq)
	if err == nil {
		err = b.purge(ctx, msg.subject, msg.seq+1)
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	return confirm()
}

// forget removes what was published to an agent before the delete with sequence
// seq, which comes next. All of that is settled; but one whose acknowledgement was
// lost would come again, and a deleted agent does not know its id any more: the input
// would make it again. So it is gone before the agent is given the delete:
// after a crash there is none. The error is ctx's.
func (b *Inbox) forget(ctx context.Context, a messages.AgentID, seq uint64) error {
	return persist(ctx, func() error { return b.purge(ctx, b.cfg.Subjects.InboxOfAgent(a), seq) }, func(err error, _ time.Duration) {
		b.cfg.Logger.Warn("what was sent to a deleted agent before its end cannot be removed; it is tried again", b.about(a), "error", err)
	})
}

// purge removes what was published to a subject before the message with sequence before.
func (b *Inbox) purge(ctx context.Context, subject string, before uint64) error {
	return b.stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(before))
}

// persist tries until it succeeds, ctx ends or the error is permanent.
func persist(ctx context.Context, try func() error, failed backoff.Notify) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = longestPause
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, try() },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(failed))
	return err
}
