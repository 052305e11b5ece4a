//go:build unix

package clustertest

import (
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// Failover returns how long agents stood still at most that had a turn under way when the
// node that owned them was killed, and how many those were. It is by the times in the
// log: up to the first frame of the next owner. member is the id that the node had.
func (w *World) Failover(member string, killed time.Time) (longest time.Duration, agents int) {
	w.t.Helper()
	log, err := readLog(w.ctx, w.js)
	w.ok(err)
	for a, frames := range log {
		for i, s := range frames {
			if i == 0 || s.frame.Epoch == frames[i-1].frame.Epoch || s.at.Before(killed) || !midTurn(frames[:i]) {
				continue
			}
			if w.leases.writer(a.Partition(), frames[i-1].frame.Epoch) == member {
				longest, agents = max(longest, s.at.Sub(killed)), agents+1
			}
		}
	}
	w.note("%d agents in mid-turn continued within %s", agents, longest)
	return longest, agents
}

// midTurn reports whether a turn has begun in frames and not ended.
func midTurn(frames []stored) (open bool) {
	for _, ev := range events(frames) {
		switch ev.(type) {
		case messages.TurnStarted:
			open = true
		case messages.TurnCompleted, messages.TurnFailed, messages.TurnAborted:
			open = false
		}
	}
	return open
}

// Moved returns when a partition last changed hands, by the time in the bucket of leases.
func (w *World) Moved() time.Time {
	w.leases.mu.Lock()
	defer w.leases.mu.Unlock()
	return w.leases.moved
}

// waits finds the input that waited longest between its first sending and the frame that
// accepts it.
func (e *evidence) waits(frames []stored) {
	for _, s := range frames {
		for _, ev := range s.frame.Events {
			in, is := ev.(messages.InputAccepted)
			if sent := e.b.sent[in.Input]; is && sent != nil && in.Parent == nil {
				e.account.Wait = max(e.account.Wait, s.at.Sub(sent.began))
			}
		}
	}
}
