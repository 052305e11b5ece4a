package memlog

import (
	"context"
	"iter"
	"slices"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Follow yields heads; see eventlog.Follower. Its error is ctx's.
func (l *Log) Follow(ctx context.Context, p messages.Partition) iter.Seq2[eventlog.Head, error] {
	return func(yield func(eventlog.Head, error) bool) {
		past, next := l.newest(p)
		for _, h := range append(past, eventlog.Head{}) {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Head{}, err)
				return
			}
			if !yield(h, nil) {
				return
			}
		}
		for {
			heads, more := l.heads(p, next)
			for _, h := range heads {
				if !yield(h, nil) {
					return
				}
			}
			next += len(heads)
			if more == nil && ctx.Err() == nil {
				continue
			}
			select {
			case <-ctx.Done():
				yield(eventlog.Head{}, ctx.Err())
				return
			case <-more:
			}
		}
	}
}

// newest gives the newest head of each agent, oldest first, and where the
// heads after them begin.
func (l *Log) newest(p messages.Partition) (past []eventlog.Head, next int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.parts[p].heads
	seen := make(map[messages.AgentID]bool)
	for _, h := range slices.Backward(all) {
		if !seen[h.Agent] {
			seen[h.Agent] = true
			past = append(past, h)
		}
	}
	slices.Reverse(past)
	return past, len(all)
}

// heads gives the heads from the n-th on, or a channel that closes when there
// are some.
func (l *Log) heads(p messages.Partition, n int) ([]eventlog.Head, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	part := &l.parts[p]
	if n < len(part.heads) {
		return part.heads[n:], nil
	}
	if part.more == nil {
		part.more = make(chan struct{})
	}
	return nil, part.more
}
