package cluster

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots bound how many do something at once; the oldest that waits comes first. Safe for
// concurrent use.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter // one for each partition at most
}

type waiter struct {
	since time.Time
	given chan struct{} // closed when it has a slot
}

// take waits for a slot until ctx ends, and reports whether it has one.
func (s *slots) take(ctx context.Context, since time.Time) bool {
	w := &waiter{since, make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.give(0)
	s.mu.Unlock()
	select {
	case <-w.given:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.waiting, w); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	} else {
		s.give(1) // it was given one meanwhile
	}
	return false
}

// leave returns a slot.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give(1)
}

// give adds to what is free and gives that to those who have waited for the longest. s.mu
// is held.
func (s *slots) give(more int) {
	for s.free += more; s.free > 0 && len(s.waiting) > 0; s.free-- {
		first := slices.MinFunc(s.waiting, func(a, b *waiter) int { return a.since.Compare(b.since) })
		close(first.given)
		at := slices.Index(s.waiting, first)
		s.waiting = slices.Delete(s.waiting, at, at+1)
	}
}
