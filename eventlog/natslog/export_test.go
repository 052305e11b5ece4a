package natslog

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/eventlog"
)

// FrameHeader is the headers of an entry without the fence, for tests that
// store what Append would not.
func FrameHeader(e eventlog.Entry) nats.Header {
	return nats.Header{
		headerFrame:  {frameLine(e.Frame)},
		headerEvents: {e.Types()},
		headerState:  {stateLine(e.Summary)},
	}
}

// Explained adds to an error of opening what to do about it.
var Explained = explained

// Streams are the streams as Open creates them.
var Streams = streams

// AskedAtOnce is how many requests of agents to a stream wait for answers at the same time.
const AskedAtOnce = askedAtOnce

// Newest returns what asks a stream for its newest message.
func Newest(nc *nats.Conn) (func(ctx context.Context, stream string) error, error) {
	c, err := newConn(nc)
	return func(ctx context.Context, stream string) error {
		_, err := c.newest(ctx, stream, ">")
		return err
	}, err
}

// QuietRounds is how many fetches must have brought nothing but a node's own frames before it
// stops reading the stream for them.
const QuietRounds = quietRounds

// OwnBytes is how much of a node's own frames is kept for the reader of their shard.
const OwnBytes = ownBytes
