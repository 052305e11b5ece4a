//go:build unix

package clustertest

import (
	"context"
	"sync"
)

// Watched is embedded in what several goroutines change, under its lock, and wait for. The
// zero value is ready.
type Watched struct {
	sync.Mutex
	changed chan struct{} // closed at the next change; nil: nothing waits
}

// Write makes a change and wakes those who wait for one.
func (w *Watched) Write(change func()) {
	w.Lock()
	defer w.Unlock()
	change()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// Until waits until something holds, and returns false if ctx ended or stop was closed before.
func (w *Watched) Until(ctx context.Context, stop <-chan struct{}, holds func() bool) bool {
	for {
		w.Lock()
		if holds() {
			w.Unlock()
			return true
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.Unlock()
		select {
		case <-changed:
		case <-stop:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
