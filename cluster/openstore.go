package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// ErrNoKey is returned for an encrypted store whose wrapping key is not given.
var ErrNoKey = errors.New("this store is encrypted: what is stored in it needs the wrapping key")

// OpenStore opens the store of an installation beside its nodes, for payloads and definitions. What is
// written is encrypted if the store is, under the first of the wrapping keys. conn is made as
// natslog.Connect makes it.
func OpenStore(ctx context.Context, conn *nats.Conn, root string, ring []encrypted.Key) (store eventlog.Store, err error) {
	subjects := messages.Subjects{Root: root}
	js, err := jetstream.New(conn)
	if err != nil {
		return store, err
	}
	name := natslog.NamesOf(subjects).Definitions()
	if _, err := js.Stream(ctx, name); err != nil { // Open would make it
		return store, fmt.Errorf("stream %s: %w: is this the server of an installation?", name, err)
	}
	log, err := natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{conn}, Subjects: subjects, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return store, err
	}
	keys, err := keysBeside(ctx, log, ring)
	return encrypted.New(log.Store(), log, keys).Store(), err
}

// keysBeside returns the keys of a store that nodes have encrypted. Nil: it is not encrypted.
func keysBeside(ctx context.Context, log *natslog.Log, ring []encrypted.Key) (*encrypted.Keys, error) {
	marked, err := log.MarkedEncrypted(ctx)
	if err != nil || !marked {
		return nil, err
	}
	bucket, err := log.FindKeys(ctx)
	switch {
	case err != nil:
		return nil, err
	case bucket == nil:
		return nil, errors.New("the stream that holds the keys of this encrypted store is missing: put it back from a copy, with `reprise restore --keys`")
	case len(ring) == 0:
		return nil, ErrNoKey
	}
	return encrypted.Open(ctx, bucket, ring...)
}
