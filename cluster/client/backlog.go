package client

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Backlog is how many inputs and commands are stored and not yet applied.
func (c *Client) Backlog(ctx context.Context) (uint64, error) {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return 0, err
	}
	s, err := js.Stream(ctx, strings.ToUpper(c.root())+"_IN")
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return 0, c.noStreams()
	case err != nil:
		return 0, err
	}
	return s.CachedInfo().State.Msgs, nil
}
