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

// place is where a message is: its sequence, when it was stored, and the subject
// that settles it.
type place struct {
	seq    uint64
	stored time.Time
	settle string
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
	at := place{seq, meta.Timestamp, msg.Reply}
	return &message{at, msg.Subject, msg.Header, msg.Data, messages.StreamInputID(origins.Of(seq), seq)}, meta, nil
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
		return &message{it.place, raw.Subject, raw.Header, raw.Data, messages.StreamInputID(origins.Of(it.seq), it.seq)}, nil
	}
}

// ack takes a message out of the queue.
func (b *Inbox) ack(at place) {
	if err := b.cfg.Conn.Publish(at.settle, []byte("+ACK")); err != nil {
		b.cfg.Logger.Warn("an input was applied but not acknowledged; it will come again and change nothing", "sequence", at.seq, "error", err)
	}
}

// term takes a message that is a dead letter out of the queue, and waits until the server
// says that it is: until then another owner may be given it. The error is ctx's, or says
// that the connection is closed.
func (b *Inbox) term(ctx context.Context, at place, why string) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = longestPause
	_, err := backoff.Retry(ctx, func() (*nats.Msg, error) {
		within, cancel := context.WithTimeout(ctx, insistEach)
		defer cancel()
		done, err := b.cfg.Conn.RequestWithContext(within, at.settle, []byte("+TERM "+messages.OneLine(why)))
		if errors.Is(err, nats.ErrConnectionClosed) {
			return nil, backoff.Permanent(err)
		}
		return done, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) {
		b.cfg.Logger.Warn("a dead letter was stored but its message is not known to be removed; it is tried again", "sequence", at.seq, "error", err)
	}))
	return err
}
