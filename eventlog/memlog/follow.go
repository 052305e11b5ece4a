package memlog

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// Follow yields heads; see eventlog.Feed. Its error is ctx's.
func (l *Log) Follow(ctx context.Context, p messages.Partition) iter.Seq2[eventlog.Stored, error] {
	return func(yield func(eventlog.Stored, error) bool) {
		past, at := l.newest(p)
		for _, h := range append(past, eventlog.Head{}) {
			if err := ctx.Err(); err != nil {
				yield(eventlog.Stored{}, err)
				return
			}
			if !yield(eventlog.Stored{Head: h}, nil) {
				return
			}
		}
		for {
			all, more := l.behind(p, at)
			for _, m := range all {
				if at = m.head.Seq; !yield(m.message(), nil) {
					return
				}
			}
			if !await(ctx, more) {
				yield(eventlog.Stored{}, ctx.Err())
				return
			}
		}
	}
}

// await waits until there is more, or says that ctx has ended.
func await(ctx context.Context, more <-chan struct{}) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-more:
		return true
	}
}

// newest returns the newest head of each agent, oldest first, and the sequence
// that what comes is behind. Where a head is foreign it returns the newest frame's too.
func (l *Log) newest(p messages.Partition) (past []eventlog.Head, at uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := make(map[messages.AgentID]bool) // whether a frame was
	for _, m := range slices.Backward(l.parts[p].all) {
		if frame, known := seen[m.head.Agent]; !known || !frame && !m.head.Foreign {
			seen[m.head.Agent] = !m.head.Foreign
			past = append(past, m.head)
		}
	}
	slices.Reverse(past)
	return past, l.seq
}

// behind returns what the partition holds behind a sequence, and a channel that
// is closed when there is more.
func (l *Log) behind(p messages.Partition, at uint64) ([]*stored, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	part := &l.parts[p]
	if part.more == nil {
		part.more = make(chan struct{})
	}
	all := part.all
	return all[first(all, at+1):], part.more
}

// first is the place of the first message whose sequence is seq or more.
func first(all []*stored, seq uint64) int {
	n, _ := slices.BinarySearchFunc(all, seq, func(m *stored, seq uint64) int { return cmp.Compare(m.head.Seq, seq) })
	return n
}
