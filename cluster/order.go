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
	last map[messages.AgentID]*queued
}

// queued is a command in the order.
type queued struct {
	before *queued // nil: none is
	done   chan struct{}
}

// join queues a command behind all others for the agent.
func (o *order) join(a messages.AgentID) *queued {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = make(map[messages.AgentID]*queued)
	}
	mine := &queued{before: o.last[a], done: make(chan struct{})}
	o.last[a] = mine
	return mine
}

// wait waits until all commands before are done.
func (p *queued) wait(ctx context.Context) error {
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

// leave removes a command that was answered, or given up.
func (o *order) leave(a messages.AgentID, mine *queued) {
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

func (p *queued) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
