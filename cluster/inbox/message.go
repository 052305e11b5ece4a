package inbox

import (
	"context"
	"errors"
	"time"

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

func (m *message) size() int { return len(m.data) + bodyRest }

// source is the stream that messages come from.
type source struct {
	stream  jetstream.Stream
	origins natslog.Origins
}

// id returns the idempotency key of an input that came without one.
func (s source) id(at place) string {
	return messages.StreamInputID(s.origins.Of(at.seq), at.seq, at.stored)
}

// message makes a message of what a consumer has delivered, and returns its number
// among what was delivered.
func (s source) message(msg *nats.Msg) (_ *message, meta *nats.MsgMetadata, err error) {
	meta, err = msg.Metadata()
	if err != nil {
		return nil, nil, err
	}
	at := place{meta.Sequence.Stream, meta.Timestamp, msg.Reply, time.Now()}
	return &message{at, msg.Subject, msg.Header, msg.Data, s.id(at)}, meta, nil
}

// again reads a message from the stream; nil: it is gone.
func (s source) again(ctx context.Context, at place) (*message, error) {
	raw, err := s.stream.GetMsg(ctx, at.seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, messages.Refuse(messages.Unavailable, "message %d of the inputs cannot be read: %v", at.seq, err)
	}
	return &message{at, raw.Subject, raw.Header, raw.Data, s.id(at)}, nil
}
