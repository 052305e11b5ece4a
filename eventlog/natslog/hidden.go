package natslog

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// hidden are the agents whose newest message is foreign, with its sequence: of
// the past only that one comes, and a frame may stand before it.
type hidden map[messages.AgentID]uint64

func (h *hidden) note(head eventlog.Head) {
	switch {
	case !head.Foreign:
		delete(*h, head.Agent)
	case *h == nil:
		*h = hidden{head.Agent: head.Seq}
	default:
		(*h)[head.Agent] = head.Seq
	}
}

// unhide yields the heads of the newest frames that foreign messages hide.
func (l *Log) unhide(ctx context.Context, all hidden, yield func(eventlog.Stored, error) bool) (more bool, err error) {
	for a, seq := range all {
		m, err := l.headBefore(ctx, a, seq)
		if err != nil {
			return false, fmt.Errorf("look for the frame of %s before sequence %d: %w", a, seq, err)
		}
		if m == nil {
			continue // none was ever there
		}
		if head, ok := l.head(m); ok && !yield(eventlog.Stored{Head: head}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// headBefore returns the agent's newest frame before sequence seq, without its
// body; nil if there is none. It looks further back each time.
func (l *Log) headBefore(ctx context.Context, a messages.AgentID, seq uint64) (*delivery, error) {
	for back := uint64(1000); ; back *= 16 {
		from := uint64(1)
		if seq > back {
			from = seq - back
		}
		m, err := l.headBetween(ctx, a, from, seq)
		if m != nil || err != nil || from == 1 {
			return m, err
		}
	}
}

// headBetween returns the agent's newest frame from sequence from on and before
// seq, at which a message of the agent stands.
func (l *Log) headBetween(ctx context.Context, a messages.AgentID, from, seq uint64) (newest *delivery, err error) {
	p := a.Partition()
	feed, err := l.conn(p).feed(ctx, l.stream[p], jetstream.ConsumerConfig{
		FilterSubject: l.subject(a, p), HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
	})
	if err != nil {
		return nil, err
	}
	defer feed.close()
	err = feed.all(ctx, func(m *delivery) bool {
		if m.seq < seq && m.isFrame() {
			newest = m
		}
		return m.seq < seq
	}, nil)
	return newest, err
}
