package actorstest

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// recorder is a log that remembers what was stored in it.
type recorder struct {
	eventlog.Log
	mu     sync.Mutex
	stored map[messages.AgentID][]eventlog.Entry
	more   chan struct{} // closed with the next frame
}

func newRecorder(log eventlog.Log) *recorder {
	return &recorder{Log: log, stored: make(map[messages.AgentID][]eventlog.Entry), more: make(chan struct{})}
}

// Append stores one frame at a time, so that what is remembered is in order. The end of
// ctx takes back nothing that was sent: the outcome is awaited, for it may be stored.
func (r *recorder) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tail, err := r.Log.Append(context.WithoutCancel(ctx), e)
	if err != nil {
		return tail, err
	}
	all := r.stored[e.Agent]
	if len(all) == 0 || all[len(all)-1].Frame.ID != e.Frame.ID {
		r.stored[e.Agent] = append(all, e)
		close(r.more)
		r.more = make(chan struct{})
	}
	return tail, nil
}

// entries gives what is stored, and a channel that closes when there is more.
func (r *recorder) entries(a messages.AgentID) ([]eventlog.Entry, <-chan struct{}) {
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
	mu      sync.RWMutex
	isDead  bool
	pending int           // appends under way
	none    chan struct{} // closed when pending is 0 and the node is dead
}

func newMortal(log eventlog.Log) *mortal { return &mortal{Log: log, none: make(chan struct{})} }

// kill lets no append begin any more.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isDead {
		return
	}
	m.isDead = true
	if m.pending == 0 {
		close(m.none)
	}
}

// begin says whether an append may begin.
func (m *mortal) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isDead {
		m.pending++
	}
	return !m.isDead
}

// end says whether the node hears of what became of its append.
func (m *mortal) end() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending--
	if m.isDead && m.pending == 0 {
		close(m.none)
	}
	return !m.isDead
}

// Append appends while the node lives. A dead one waits for the end of ctx: also
// for the answer to what it sent before.
func (m *mortal) Append(ctx context.Context, e eventlog.Entry) (eventlog.Tail, error) {
	if m.begin() {
		tail, err := m.Log.Append(ctx, e)
		if m.end() {
			return tail, err
		}
	}
	<-ctx.Done()
	return eventlog.Tail{}, errDead
}

// PutBlob stores a blob while the node lives, on the terms of Append.
func (m *mortal) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	if m.begin() {
		b, err := m.Log.PutBlob(ctx, a, r)
		if m.end() {
			return b, err
		}
	}
	<-ctx.Done()
	return messages.Blob{}, errDead
}

// PutSnapshot stores a snapshot while the node lives.
func (m *mortal) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	if !m.begin() {
		return errDead
	}
	defer m.end()
	return m.Log.PutSnapshot(ctx, a, name, snapshot)
}

// witness is an observer that hears nothing of a dead node.
type witness struct {
	of  actors.Observer
	log *mortal
}

func (w *witness) alive(tell func()) {
	w.log.mu.RLock()
	defer w.log.mu.RUnlock()
	if !w.log.isDead {
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
