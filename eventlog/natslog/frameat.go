package natslog

import (
	"context"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// FrameAt gives a single frame; see eventlog.Finder.
func (l *Log) FrameAt(ctx context.Context, a messages.AgentID, seq uint64) (eventlog.Recorded, error) {
	if err := a.Validate(); err != nil {
		return eventlog.Recorded{}, err
	}
	p := a.Partition()
	var m *stored
	if seq > 0 {
		var err error
		if m, err = l.conn(p).at(ctx, l.stream[p], seq); err != nil {
			return eventlog.Recorded{}, err
		}
	}
	if m == nil || m.subject != l.subject(a, p) || !m.isFrame() {
		return eventlog.Recorded{}, messages.Refuse(messages.NotFound, "the log of %s has no frame at sequence %d", a, seq)
	}
	f, err := decode(a, m)
	if err != nil {
		return eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Seq: seq, Err: err}
	}
	return eventlog.Recorded{Agent: a, Seq: seq, Frame: f, Digest: messages.DigestOf(m.data), Size: len(m.data)}, nil
}
