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
	mu    sync.Mutex
	of    map[messages.AgentID]int
	ended chan struct{} // closed when one has ended; nil: nothing waits
}

// begin counts something that is stored of the agent, until end.
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
	if w.ended != nil {
		close(w.ended)
		w.ended = nil
	}
}

// wait returns once nothing is being stored of the agent, or ctx has ended.
func (w *writers) wait(ctx context.Context, a messages.AgentID) error {
	for {
		w.mu.Lock()
		if w.of[a] == 0 {
			w.mu.Unlock()
			return nil
		}
		if w.ended == nil {
			w.ended = make(chan struct{})
		}
		ended := w.ended
		w.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
