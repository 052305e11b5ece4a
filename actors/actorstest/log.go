package actorstest

import (
	"context"
	"errors"
	"sync"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// recorder is a log that remembers what was stored in it.
type recorder struct {
	eventlog.Log
	mu     sync.Mutex
	stored map[messages.AgentID][]*messages.Frame
	more   chan struct{} // closed with the next frame
}

func newRecorder(log eventlog.Log) *recorder {
	return &recorder{Log: log, stored: make(map[messages.AgentID][]*messages.Frame), more: make(chan struct{})}
}

// Append stores one frame at a time, so that what is remembered is in order.
func (r *recorder) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tail, err := r.Log.Append(ctx, e)
	if err != nil {
		return tail, err
	}
	all := r.stored[e.Agent]
	if len(all) == 0 || all[len(all)-1].ID != e.Frame.ID {
		r.stored[e.Agent] = append(all, e.Frame)
		close(r.more)
		r.more = make(chan struct{})
	}
	return tail, nil
}

// frames gives what is stored, and a channel that closes when there is more.
func (r *recorder) frames(a messages.AgentID) ([]*messages.Frame, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.stored[a]
	return all[:len(all):len(all)], r.more
}

// errDead is what an append of a node that crashed would have met.
var errDead = errors.New("actorstest: the node has crashed")

// mortal is a node's way to the log.
type mortal struct {
	eventlog.Log
	mu   sync.RWMutex // held for reading while an append is under way
	once sync.Once
	dead chan struct{}
}

// kill returns when no append is under way and none will be.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.once.Do(func() { close(m.dead) })
}

func (m *mortal) died() bool {
	select {
	case <-m.dead:
		return true
	default:
		return false
	}
}

// Append appends unless the node is dead; then it waits for the end of ctx.
func (m *mortal) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	m.mu.RLock()
	if !m.died() {
		defer m.mu.RUnlock()
		return m.Log.Append(ctx, e)
	}
	m.mu.RUnlock()
	<-ctx.Done()
	return eventlog.Tail{}, errDead
}

// witness is an observer that hears nothing of a dead node.
type witness struct {
	of  actors.Observer
	log *mortal
}

func (w *witness) alive(tell func()) {
	w.log.mu.RLock()
	defer w.log.mu.RUnlock()
	if !w.log.died() {
		tell()
	}
}

// Committed passes a commit on.
func (w *witness) Committed(c actors.Commit) { w.alive(func() { w.of.Committed(c) }) }

// Owed passes replies on.
func (w *witness) Owed(r []actors.Reply) { w.alive(func() { w.of.Owed(r) }) }

// Delta passes a piece of an answer on.
func (w *witness) Delta(d actors.Delta) { w.alive(func() { w.of.Delta(d) }) }

// Fenced passes on that an agent has a newer owner.
func (w *witness) Fenced(a messages.AgentID, e messages.Epoch) { w.alive(func() { w.of.Fenced(a, e) }) }
