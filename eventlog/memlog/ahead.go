package memlog

import (
	"context"
	"iter"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// ReadAhead yields newest frames as of the call for each; see eventlog.Log.
func (l *Log) ReadAhead(ctx context.Context, _ messages.Partition, agents []messages.AgentID) iter.Seq2[eventlog.Newest, error] {
	return func(yield func(eventlog.Newest, error) bool) {
		for _, a := range agents {
			all, err := l.subject(a)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(eventlog.Newest{}, err)
				return
			}
			if len(all) == 0 || all[len(all)-1].head.Foreign {
				continue
			}
			m := all[len(all)-1]
			if !yield(eventlog.Newest{Agent: a, Seq: m.head.Seq, Last: m.head.Last, Size: len(m.bytes)}, nil) {
				return
			}
		}
	}
}
