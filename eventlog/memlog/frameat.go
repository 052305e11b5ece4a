package memlog

import (
	"context"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// FrameAt gives a single frame; see eventlog.Finder.
func (l *Log) FrameAt(ctx context.Context, a messages.AgentID, seq uint64) (eventlog.Recorded, error) {
	all, err := l.subject(a)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return eventlog.Recorded{}, err
	}
	n := first(all, seq)
	if n == len(all) || all[n].head.Seq != seq || all[n].head.Foreign {
		return eventlog.Recorded{}, messages.Refuse(messages.NotFound, "the log of %s has no frame at sequence %d", a, seq)
	}
	f, err := messages.DecodeFrame(a, all[n].bytes)
	if err != nil {
		return eventlog.Recorded{}, &eventlog.DamageError{Agent: a, Seq: seq, Err: err}
	}
	return eventlog.Recorded{Agent: a, Seq: seq, Frame: f, Digest: messages.DigestOf(all[n].bytes), Size: len(all[n].bytes)}, nil
}
