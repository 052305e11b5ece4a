package cluster

import (
	"context"
	"sync"
	"time"
)

// places are a number of places for which the oldest of those who wait comes first.
// Safe for concurrent use.
type places struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter // one for each partition at most
}

type waiter struct {
	since time.Time
	given chan struct{} // closed when it has a place
}

// take waits for a place until ctx ends, and says whether it has one.
func (p *places) take(ctx context.Context, since time.Time) bool {
	w := &waiter{since, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.give()
	p.mu.Unlock()
	select {
	case <-w.given:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, x := range p.waiting {
		if x == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return false
		}
	}
	p.free++ // it was given one meanwhile
	p.give()
	return false
}

// leave gives a place back.
func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	p.give()
}

// give gives what is free to those who have waited for the longest. p.mu is held.
func (p *places) give() {
	for p.free > 0 && len(p.waiting) > 0 {
		first := 0
		for i, w := range p.waiting {
			if w.since.Before(p.waiting[first].since) {
				first = i
			}
		}
		close(p.waiting[first].given)
		p.waiting = append(p.waiting[:first], p.waiting[first+1:]...)
		p.free--
	}
}
