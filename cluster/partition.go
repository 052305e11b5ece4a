package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// partition is one that this node owns, or is about to take.
type partition struct {
	mu sync.Mutex
	known

	epoch messages.Epoch // ours; 0: the partition is not
	// damaged reports that commands are refused there.
	damaged bool
	stop    func() // ends what acts there
	list    []wakeup
	more    chan struct{} // receives when list has grown, or a timer has come to the front
}

// known is what the heads of a partition say. The zero value is that of one whose heads are not read.
type known struct {
	told    chan struct{} // closed when the past has been read
	end     func()        // ends the reading; read is closed when it has ended
	read    chan struct{}
	highest messages.Epoch
	newest  time.Time
	// open are the agents that owe work; replies those with a newest frame so recent that
	// its replies may not have been sent, oldest first.
	open    map[messages.AgentID]time.Time
	replies []wakeup
	// streams are those with an open turn whose answer is streamed to a caller that may have to
	// be notified that the endpoint is gone.
	streams map[messages.AgentID]time.Time
	// timers are those of agents that owe nothing until then.
	timers timers
}

// wakeup is an agent that is to be woken, and since when.
type wakeup struct {
	agent messages.AgentID
	since time.Time
}

// replyWindow is how long before the partition's newest frame one may be for its
// replies to be sent again: their sending takes milliseconds.
const replyWindow = 10 * time.Second

// note remembers what a taker of the partition must know.
func (w *partition) note(head eventlog.Head) {
	w.highest = max(w.highest, head.Epoch)
	if head.Time.After(w.newest) {
		w.newest = head.Time
	}
	if head.Open {
		if w.open == nil {
			w.open = make(map[messages.AgentID]time.Time)
		}
		w.open[head.Agent] = head.Time
	} else {
		delete(w.open, head.Agent)
	}
	if w.timers.note(head) {
		w.stir()
	}
	delete(w.streams, head.Agent)
	if head.Replies && head.Turn != "" {
		if w.streams == nil {
			w.streams = make(map[messages.AgentID]time.Time)
		}
		w.streams[head.Agent] = head.Time
	}
	if head.Replies {
		w.replies = append(w.replies, wakeup{head.Agent, head.Time})
	}
	old := 0
	for old < len(w.replies) && w.replies[old].since.Before(w.newest.Add(-replyWindow)) {
		old++
	}
	w.replies = w.replies[old:]
}

// owes reports whether the agent owes work, and is not only activated for its replies or streams.
func (w *partition) owes(a messages.AgentID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, open := w.open[a]
	return open
}

// toWake returns the agents that a taker must wake, oldest first.
func (w *partition) toWake() []wakeup {
	at := make(map[messages.AgentID]time.Time, len(w.open)+len(w.replies)+len(w.streams))
	for _, e := range w.replies {
		at[e.agent] = e.since
	}
	maps.Copy(at, w.streams)
	maps.Copy(at, w.open)
	list := make([]wakeup, 0, len(at))
	for a, t := range at {
		list = append(list, wakeup{a, t})
	}
	slices.SortFunc(list, func(a, b wakeup) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.agent.Full(), b.agent.Full()))
	})
	return list
}

// owe adds agents to those that are woken, if the partition is still ours under
// epoch. w.mu is held.
func (w *partition) owe(epoch messages.Epoch, agents ...wakeup) {
	if w.epoch != epoch || len(agents) == 0 {
		return
	}
	w.list = append(w.list, agents...)
	w.stir()
}

// stir has await look again. w.mu is held.
func (w *partition) stir() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// await takes the next agents that are to be woken, because they owe work or their
// timers are due. It waits for one until ctx ends; then there is none.
func (w *partition) await(ctx context.Context) (crowd []wakeup) {
	for ctx.Err() == nil {
		crowd, wait := w.next()
		if len(crowd) > 0 {
			return crowd
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-w.more:
		case <-due:
		case <-ctx.Done():
		}
	}
	return nil
}

// next takes the next agents that are to be woken; if there are none it returns how long there
// will be none but for new heads, 0 being forever.
func (w *partition) next() (crowd []wakeup, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch == 0 {
		return nil, 0
	}
	now := time.Now()
	w.list = w.timers.ripe(w.list, now)
	if len(w.list) == 0 {
		return nil, w.timers.wait(now)
	}
	n := min(len(w.list), crowded)
	crowd, w.list = w.list[:n:n], w.list[n:]
	return crowd, 0
}

// woken records that an agent has been woken and has answered.
func (w *partition) woken(a messages.AgentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timers.woken(a, time.Now()) {
		w.stir()
	}
}
