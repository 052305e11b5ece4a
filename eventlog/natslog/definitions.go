package natslog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// PutDefinition stores a definition under its hash; see eventlog.Definitions.
// One that the server would not let through is refused with messages.TooLarge.
func (l *Log) PutDefinition(ctx context.Context, definition []byte) (messages.Digest, error) {
	c, hash := l.conns[0], messages.DigestOf(definition)
	if most := int(c.nc.MaxPayload()) - headroom; len(definition) > most {
		return "", messages.Refuse(messages.TooLarge, "the definition has %d bytes, this NATS server takes up to %d: shorten its instructions or raise max_payload", len(definition), most)
	}
	stream, subject := l.names.Definitions(), l.subjects.Definition(string(hash))
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 20*time.Millisecond, time.Second
	return backoff.Retry(ctx, func() (messages.Digest, error) {
		_, refusal := c.publish(ctx, &nats.Msg{Subject: subject, Data: definition, Header: nats.Header{
			headerStream: {stream},
			headerFence:  {"0"},
		}})
		if refusal == nil {
			return hash, nil
		}
		// If another has stored it before, it is the same: its name is its hash.
		m, err := c.newest(ctx, stream, subject)
		switch {
		case err != nil:
			return "", fmt.Errorf("store definition %s: whether it is stored already cannot be read: %w (publishing it ended so: %v)", hash, err, refusal)
		case m != nil:
			return hash, nil
		}
		err = fmt.Errorf("store definition %s: %w", hash, refusal)
		if api := (*jetstream.APIError)(nil); errors.As(refusal, &api) && api.ErrorCode == codeStoreFailed {
			err = fmt.Errorf("store definition %s: stream %s has it and cannot read it, for its file is damaged: stop the server and, if it is a node's own, run `reprise doctor --data DIR --quarantine`; else restore a backup", hash, stream)
		}
		if !conflicting(refusal) { // else that of another node is in hand, and may yet fail
			err = backoff.Permanent(err)
		}
		return "", err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(settleTime))
}

// Definition returns a stored definition; see eventlog.Definitions. One whose
// bytes do not match its hash is messages.Damaged.
func (l *Log) Definition(ctx context.Context, hash messages.Digest) ([]byte, error) {
	if b, err := hex.DecodeString(string(hash)); err != nil || len(b) != 32 {
		return nil, messages.Refuse(messages.NotFound, "%q is no definition's hash: want 64 hex digits", hash)
	}
	m, err := l.conns[0].newest(ctx, l.names.Definitions(), l.subjects.Definition(string(hash)))
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, messages.Refuse(messages.NotFound, "definition %s is not stored here", hash)
	case messages.DigestOf(m.data) != hash:
		return nil, messages.Refuse(messages.Damaged, "definition %s is damaged: its bytes have hash %s", hash, messages.DigestOf(m.data))
	}
	return m.data, nil
}
