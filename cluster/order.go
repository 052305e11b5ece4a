package cluster

import (
	"context"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// order makes the commands that come to one endpoint for one agent wait for one another, so that
// they are accepted in the order in which they came, also when one has to be sent again. The zero value
// is ready. Safe for concurrent use.
type order struct {
	mu   sync.Mutex
	last map[messages.AgentID]*place
}

// place is a command's place in the order.
type place struct {
	before *place // nil: none is
	done   chan struct{}
}

// join returns a place behind all commands for the agent.
func (o *order) join(a messages.AgentID) *place {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = make(map[messages.AgentID]*place)
	}
	mine := &place{before: o.last[a], done: make(chan struct{})}
	o.last[a] = mine
	return mine
}

// wait waits until all commands before are done.
func (p *place) wait(ctx context.Context) error {
	for b := p.before; b != nil; b = b.before {
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err() // those behind wait for the ones before, too
		}
	}
	p.before = nil
	return nil
}

// leave ends a command's place.
func (o *order) leave(a messages.AgentID, mine *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(mine.done)
	last := o.last[a]
	for last != nil && last.isDone() {
		last = last.before
	}
	if last == nil {
		delete(o.last, a)
	} else {
		o.last[a] = last
	}
}

func (p *place) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
