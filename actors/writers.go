package actors

import (
	"context"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// writers knows who is storing something of an agent beside its log, a blob or a
// snapshot, which may go on after the agent has gone: a purge waits for them, or
// they would leave something behind it. The zero value is ready. Safe for
// concurrent use.
type writers struct {
	mu   sync.Mutex
	of   map[messages.AgentID]int
	left chan struct{} // closed when one has ended; nil: nobody waits
}

// begin says that somebody stores something of the agent from now until end.
func (w *writers) begin(a messages.AgentID) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = make(map[messages.AgentID]int)
	}
	w.of[a]++
	return func() { w.end(a) }
}

func (w *writers) end(a messages.AgentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[a]--; w.of[a] == 0 {
		delete(w.of, a)
	}
	if w.left != nil {
		close(w.left)
		w.left = nil
	}
}

// wait returns once nobody stores anything of the agent, or ctx has ended.
func (w *writers) wait(ctx context.Context, a messages.AgentID) error {
	for {
		w.mu.Lock()
		if w.of[a] == 0 {
			w.mu.Unlock()
			return nil
		}
		if w.left == nil {
			w.left = make(chan struct{})
		}
		left := w.left
		w.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
