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

// recorder is a log that keeps the entries stored in it.
type recorder struct {
	eventlog.Log
	mu     sync.Mutex
	stored map[messages.AgentID][]eventlog.Entry
	more   chan struct{} // closed when the next frame is stored
}

func newRecorder(log eventlog.Log) *recorder {
	return &recorder{Log: log, stored: make(map[messages.AgentID][]eventlog.Entry), more: make(chan struct{})}
}

// Append stores one frame at a time, so that entries are recorded in order. It waits for the
// outcome even if ctx ends, for the frame may be stored.
func (r *recorder) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
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

// entries returns what is stored, and a channel that is closed when more is.
func (r *recorder) entries(a messages.AgentID) ([]eventlog.Entry, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.stored[a]
	return all[:len(all):len(all)], r.more
}

// errCrashed is the error of calls from a node that crashed.
var errCrashed = errors.New("actorstest: the node has crashed")

// nodeLog is the store as one node uses it. It ends with the node.
type nodeLog struct {
	eventlog.Store
	mu      sync.RWMutex
	crashed bool
	pending int           // appends in flight
	idle    chan struct{} // closed when the node has crashed and pending is 0
}

func newNodeLog(store eventlog.Store) *nodeLog {
	return &nodeLog{Store: store, idle: make(chan struct{})}
}

// store returns the store whose calls end with the node.
func (m *nodeLog) store() eventlog.Store {
	return eventlog.Store{Log: m, Blobs: m, Snapshots: m, Definitions: m.Definitions}
}

// crash keeps later appends from starting.
func (m *nodeLog) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.crashed {
		return
	}
	m.crashed = true
	if m.pending == 0 {
		close(m.idle)
	}
}

// begin reports whether an append may begin.
func (m *nodeLog) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.crashed {
		m.pending++
	}
	return !m.crashed
}

// end reports whether the node may receive the result of its append.
func (m *nodeLog) end() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending--
	if m.crashed && m.pending == 0 {
		close(m.idle)
	}
	return !m.crashed
}

// Append appends while the node runs. After a crash it returns only when ctx ends, without
// the result of an append that was sent before.
func (m *nodeLog) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	if m.begin() {
		tail, err := m.Store.Append(ctx, e)
		if m.end() {
			return tail, err
		}
	}
	<-ctx.Done()
	return eventlog.Position{}, errCrashed
}

// PutBlob stores a blob while the node runs, like Append.
func (m *nodeLog) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	if m.begin() {
		b, err := m.Store.PutBlob(ctx, a, r)
		if m.end() {
			return b, err
		}
	}
	<-ctx.Done()
	return messages.Blob{}, errCrashed
}

// PutSnapshot stores a snapshot while the node runs.
func (m *nodeLog) PutSnapshot(ctx context.Context, a messages.AgentID, name string, snapshot []byte) error {
	if !m.begin() {
		return errCrashed
	}
	defer m.end()
	return m.Store.PutSnapshot(ctx, a, name, snapshot)
}

// nodeObserver is an observer that receives nothing from a crashed node.
type nodeObserver struct {
	of  actors.Observer
	log *nodeLog
}

func (w *nodeObserver) unlessCrashed(notify func()) {
	w.log.mu.RLock()
	defer w.log.mu.RUnlock()
	if !w.log.crashed {
		notify()
	}
}

// Committed forwards a commit.
func (w *nodeObserver) Committed(c actors.Commit) { w.unlessCrashed(func() { w.of.Committed(c) }) }

// Owed forwards replies.
func (w *nodeObserver) Owed(r []actors.Reply) { w.unlessCrashed(func() { w.of.Owed(r) }) }

// Delta forwards a delta.
func (w *nodeObserver) Delta(d actors.Delta) { w.unlessCrashed(func() { w.of.Delta(d) }) }

// Streaming forwards what is streamed.
func (w *nodeObserver) Streaming(a messages.AgentID, streams map[string]messages.Stream) {
	w.unlessCrashed(func() { w.of.Streaming(a, streams) })
}

// Fenced forwards that an agent has a newer owner.
func (w *nodeObserver) Fenced(a messages.AgentID, e messages.Epoch) {
	w.unlessCrashed(func() { w.of.Fenced(a, e) })
}
