package actors

import (
	"context"
	"sync"

	"github.com/reprise-dev/reprise/messages"
)

// writers counts what is being stored of each agent beside its log, a blob or a snapshot, which
// may take longer than the agent lives: a purge waits for that, or something would be left behind
// it. The zero value is ready. Safe for concurrent use.
type writers struct {
	mu sync.Mutex
	of map[messages.AgentID]*writing
}

// writing counts what is being stored of one agent.
type writing struct {
	n     int
	ended chan struct{} // closed when n is 0 again
}

// begin counts something that is stored of the agent, until end.
func (w *writers) begin(a messages.AgentID) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = make(map[messages.AgentID]*writing)
	}
	now := w.of[a]
	if now == nil {
		now = &writing{ended: make(chan struct{})}
		w.of[a] = now
	}
	now.n++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if now.n--; now.n == 0 {
			delete(w.of, a)
			close(now.ended)
		}
	}
}

// wait returns once nothing is being stored of the agent, or ctx has ended.
func (w *writers) wait(ctx context.Context, a messages.AgentID) error {
	w.mu.Lock()
	now := w.of[a]
	w.mu.Unlock()
	if now == nil {
		return nil
	}
	select {
	case <-now.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
