package client

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Backlog returns how many inputs and commands are stored and not yet applied, and when the oldest
// of them was stored; zero if there are none. It counts those of all tenants together.
// [ErrNotAllowed] for users of a tenant.
func (c *Client) Backlog(ctx context.Context) (waiting uint64, oldest time.Time, err error) {
	js, err := jetstream.New(c.nc)
	if err != nil {
		return 0, time.Time{}, err
	}
	name := strings.ToUpper(c.root()) + "_IN"
	ctx, leave := c.refused.heed(ctx, "$JS.API.STREAM.INFO."+name)
	defer leave()
	s, err := js.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return 0, time.Time{}, c.noStreams()
	case err != nil:
		return 0, time.Time{}, why(ctx, err)
	}
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return 0, time.Time{}, nil
	}
	return state.Msgs, state.FirstTime, nil
}
