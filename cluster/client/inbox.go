package client

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// inbox gathers the messages of one streamed reply. It grows as they come, so
// that a reader that pauses loses none, and costs little when they are few,
// which a synchronous subscription's channel of half a megabyte does not.
type inbox struct {
	sub   *nats.Subscription
	wake  chan struct{}
	timer *time.Timer
	// changed receives when the connection was made anew, so that a part of the
	// reply may be lost, and when it was closed for good. Nil: never.
	changed chan nats.Status

	mu   sync.Mutex
	msgs []*nats.Msg
}

func (c *Client) listen() (*inbox, error) {
	in := &inbox{wake: make(chan struct{}, 1), timer: time.NewTimer(silence)}
	sub, err := c.nc.Subscribe(c.nc.NewInbox(), in.push)
	if err != nil {
		return nil, err
	}
	in.sub = sub
	return in, sub.SetPendingLimits(-1, -1)
}

func (in *inbox) push(msg *nats.Msg) {
	in.mu.Lock()
	in.msgs = append(in.msgs, msg)
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

func (in *inbox) close() {
	in.timer.Stop()
	_ = in.sub.Unsubscribe() // fails only with the connection
}

// next gives the oldest message not yet taken, waiting for it until ctx ends
// or nothing was heard for too long.
func (in *inbox) next(ctx context.Context, most time.Duration) (*nats.Msg, error) {
	in.timer.Reset(most)
	for {
		in.mu.Lock()
		if len(in.msgs) > 0 {
			msg := in.msgs[0]
			in.msgs[0] = nil
			in.msgs = in.msgs[1:]
			in.mu.Unlock()
			return msg, nil
		}
		in.mu.Unlock()
		select {
		case <-in.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case status := <-in.changed:
			if status != nats.CONNECTED {
				return nil, nats.ErrConnectionClosed
			}
			return nil, messages.Refuse(messages.Unavailable, "the connection to NATS was broken and has been made again: a part of the answer may be lost")
		case <-in.timer.C:
			return nil, messages.Refuse(messages.Unavailable, "nothing was heard for %v", most)
		}
	}
}
