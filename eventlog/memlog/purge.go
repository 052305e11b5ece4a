package memlog

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// is reports whether the message is the frame that t is the tail behind.
func (m *stored) is(t eventlog.Position) bool {
	return m.head.Seq == t.Seq && !m.head.Foreign && m.head.ID == t.Frame && m.head.Last == t.Last && m.head.Epoch == t.Epoch && messages.DigestOf(m.bytes) == t.Digest
}

// Purge takes history away; see eventlog.Log.
func (l *Log) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	if _, err := l.subject(a); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	all := l.agents[a]
	n := first(all, before)
	switch {
	case n == 0:
		return nil
	case n == len(all):
		return fmt.Errorf("purge %s below sequence %d: its newest message, at %d, must stay, for it is the fence", a, before, all[n-1].head.Seq)
	}
	l.agents[a] = slices.Clone(all[n:])
	part := &l.parts[a.Partition()]
	part.all = slices.DeleteFunc(slices.Clone(part.all), func(m *stored) bool { return m.head.Agent == a && m.head.Seq < before })
	return nil
}
