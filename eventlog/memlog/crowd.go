package memlog

import (
	"context"
	"iter"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Tips yields tips as of the call for each; see eventlog.Crowds.
func (l *Log) Tips(ctx context.Context, _ messages.Partition, agents []messages.AgentID) iter.Seq2[eventlog.Tip, error] {
	return func(yield func(eventlog.Tip, error) bool) {
		for _, a := range agents {
			all, err := l.subject(a)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(eventlog.Tip{}, err)
				return
			}
			if len(all) == 0 || all[len(all)-1].head.Foreign {
				continue
			}
			m := all[len(all)-1]
			if !yield(eventlog.Tip{Agent: a, Seq: m.head.Seq, Last: m.head.Last, Size: len(m.bytes)}, nil) {
				return
			}
		}
	}
}

// ReadTo yields the frames up to the tip; see eventlog.Crowds.
func (l *Log) ReadTo(ctx context.Context, tip eventlog.Tip, after eventlog.Tail) iter.Seq2[eventlog.Recorded, error] {
	return func(yield func(eventlog.Recorded, error) bool) {
		for rec, err := range l.ReadFrom(ctx, tip.Agent, after) {
			if err == nil && rec.Seq > tip.Seq || !yield(rec, err) {
				return
			}
		}
	}
}
