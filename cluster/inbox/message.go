package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// message is a message of the stream.
type message struct {
	place
	subject string
	header  nats.Header
	data    []byte
	id      string // if its sender gave none
}

// place is where a message is: its sequence, when it was stored, the subject that
// settles it, and when it came.
type place struct {
	seq    uint64
	stored time.Time
	settle string
	came   time.Time
}

// id returns the idempotency key of an input that came without one.
func (p place) id(origins natslog.Origins) string {
	return messages.StreamInputID(origins.Of(p.seq), p.seq, p.stored)
}

func (m *message) size() int { return len(m.data) + bodyRest }

// read makes a message of what a consumer has delivered, and gives its number
// among what was delivered.
func read(msg *nats.Msg, origins natslog.Origins) (_ *message, meta *nats.MsgMetadata, err error) {
	meta, err = msg.Metadata()
	if err != nil {
		return nil, nil, err
	}
	seq := meta.Sequence.Stream
	at := place{seq, meta.Timestamp, msg.Reply, time.Now()}
	return &message{at, msg.Subject, msg.Header, msg.Data, at.id(origins)}, meta, nil
}

// readAgain gives a function that reads messages from the stream.
func readAgain(stream jetstream.Stream, origins natslog.Origins) func(context.Context, item) (*message, error) {
	return func(ctx context.Context, it item) (*message, error) {
		raw, err := stream.GetMsg(ctx, it.seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, messages.Refuse(messages.Unavailable, "message %d of the inputs cannot be read: %v", it.seq, err)
		}
		return &message{it.place, raw.Subject, raw.Header, raw.Data, it.id(origins)}, nil
	}
}

// ack takes a message out of the queue.
func (b *Inbox) ack(at place) {
	if err := b.cfg.Conn.Publish(at.settle, []byte("+ACK")); err != nil {
		b.cfg.Logger.Warn("an input was applied but not acknowledged; it will come again and change nothing", "sequence", at.seq, "error", err)
	}
}

// term takes a message that is a dead letter out of the queue, if the server hears of it.
func (b *Inbox) term(at place, why string) {
	err := b.cfg.Conn.Publish(at.settle, terminated(why))
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		b.cfg.Logger.Warn("a dead letter was stored but its message not removed; it will come again", "error", err)
	}
}

func terminated(why string) []byte { return []byte("+TERM " + messages.OneLine(why)) }

// end takes a message that is a dead letter out of the queue, and returns when no other
// owner can be given it. After an error, which is ctx's, or says that the connection is
// closed, one may be.
func (b *Inbox) end(ctx context.Context, msg *message, why string) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = longestPause
	tries := 0
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := b.tryEnd(ctx, msg, terminated(why))
		if errors.Is(err, nats.ErrConnectionClosed) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		if tries++; tries%20 == 0 {
			b.cfg.Logger.Warn("a dead letter was stored but its message is not known to be removed", "sequence", msg.seq, "tries", tries, "error", err)
		}
	}))
	return err
}

// tryEnd is one attempt. A stream with copies removes a message only after its consumer
// has said that it has ended, and may lose that with its leader; so it is looked for, and
// removed. That our consumer is there even then says that the next owner's is made later.
// What is before the message on its subject is settled.
func (b *Inbox) tryEnd(ctx context.Context, msg *message, terminated []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 4*insistEach)
	defer cancel()
	tell := func() error {
		ctx, cancel := context.WithTimeout(ctx, insistEach)
		defer cancel()
		_, err := b.cfg.Conn.RequestWithContext(ctx, msg.settle, terminated)
		return err
	}
	if err := tell(); err != nil {
		return err
	}
	switch _, err := b.stream.GetMsg(ctx, msg.seq); {
	case err == nil:
		if err := b.stream.Purge(ctx, jetstream.WithPurgeSubject(msg.subject), jetstream.WithPurgeSequence(msg.seq+1)); err != nil {
			return err
		}
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return err
	}
	return tell()
}
