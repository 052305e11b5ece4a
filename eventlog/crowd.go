package eventlog

import (
	"context"
	"iter"

	"github.com/reprise-dev/reprise/messages"
)

// Tip is the newest frame of an agent, read ahead for a reading that begins with it.
type Tip struct {
	Agent messages.AgentID
	// Seq is the frame's sequence, Last the number of its last event, Size the frame's
	// in bytes as stored.
	Seq  uint64
	Last messages.EventNumber
	Size int
	// Source is the log's own: what it goes on from.
	Source any
}

// Crowds reads for many agents that come at once, as a partition's do when it gets a
// new owner, with few requests.
type Crowds interface {
	// Tips yields the tips of agents of one partition, in no order. It leaves out those
	// without a frame, or with a foreign message behind the newest one. An agent whose
	// log grows meanwhile may come twice. A tip may be old when it comes, for any copy
	// of the log may give it: what begins with one is sure only once a frame has
	// been appended behind it, or Tail has been asked. The sequence ends with its only
	// error. Safe for concurrent use.
	Tips(ctx context.Context, p messages.Partition, agents []messages.AgentID) iter.Seq2[Tip, error]
	// ReadTo yields the frames behind after up to the tip, as ReadFrom does; behind the
	// zero Tail they are the whole log. Safe for concurrent use.
	ReadTo(ctx context.Context, tip Tip, after Tail) iter.Seq2[Recorded, error]
}
