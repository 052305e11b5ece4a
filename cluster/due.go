package cluster

import (
	"container/heap"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// timers are the next timers of a partition's agents, as of their newest heads. An agent that
// owes work has none here: it is in memory and sees to its own. The others may sleep, and are
// woken when their timer is due.
//
// A timer takes about 200 bytes. The zero value is empty; the partition's lock
// guards it.
type timers struct {
	known map[messages.AgentID]*timer
	queue timerQueue // those whose agents have not been woken yet
}

// timer is the next one of an agent. Times are in ns since 1970: the clock on
// the wall, which may jump.
type timer struct {
	agent messages.AgentID
	due   int64
	wake  int64 // when the agent is to be woken: due, or later for another look
	index int   // in the queue; -1 once the agent is being woken
}

// lookAgain is how long a timer may go by the clock of the process, which does
// not see the one on the wall jump, and how long a woken agent has to report
// another timer before it is woken again.
const lookAgain = time.Minute

// note takes notice of a head, and reports whether the earliest timer is another
// one now.
func (ts *timers) note(head eventlog.Head) bool {
	was := ts.first()
	t := ts.known[head.Agent]
	switch {
	case head.Open || head.Due.IsZero():
		ts.forget(t)
	case t == nil:
		t = &timer{agent: head.Agent, due: head.Due.UnixNano(), index: -1}
		if ts.known == nil {
			ts.known = make(map[messages.AgentID]*timer)
		}
		ts.known[head.Agent] = t
		ts.set(t, t.due)
	case t.due != head.Due.UnixNano():
		t.due = head.Due.UnixNano()
		ts.set(t, t.due)
	}
	return ts.first() != was
}

func (ts *timers) forget(t *timer) {
	if t == nil {
		return
	}
	if t.index >= 0 {
		heap.Remove(&ts.queue, t.index)
	}
	delete(ts.known, t.agent)
}

func (ts *timers) set(t *timer, wake int64) {
	t.wake = wake
	if t.index < 0 {
		heap.Push(&ts.queue, t)
	} else {
		heap.Fix(&ts.queue, t.index)
	}
}

// first is when the next agent is to be woken; 0 if none is.
func (ts *timers) first() int64 {
	if len(ts.queue) == 0 {
		return 0
	}
	return ts.queue[0].wake
}

// begin puts every timer back to when it is due: no agent has been woken yet.
func (ts *timers) begin() {
	ts.queue = ts.queue[:0]
	for _, t := range ts.known {
		t.wake, t.index = t.due, len(ts.queue)
		ts.queue = append(ts.queue, t)
	}
	heap.Init(&ts.queue)
}

// ripe adds the agents to be woken by now to list, earliest first, each once.
func (ts *timers) ripe(list []wakeup, now time.Time) []wakeup {
	for len(ts.queue) > 0 && ts.queue[0].wake <= now.UnixNano() {
		t, _ := heap.Pop(&ts.queue).(*timer)
		list = append(list, wakeup{t.agent, time.Unix(0, t.wake)})
	}
	return list
}

// wait is how long to wait before asking what is ripe again; 0: until a head comes.
func (ts *timers) wait(now time.Time) time.Duration {
	if len(ts.queue) == 0 {
		return 0
	}
	return min(max(time.Duration(ts.first()-now.UnixNano()), 1), lookAgain)
}

// woken records that an agent has been woken. It is woken again later, unless its
// heads report another timer or none by then. It reports whether the
// earliest timer is another one now.
func (ts *timers) woken(a messages.AgentID, now time.Time) bool {
	was := ts.first()
	if t := ts.known[a]; t != nil && t.index < 0 {
		ts.set(t, max(t.due, now.Add(lookAgain).UnixNano()))
	}
	return ts.first() != was
}

// timerQueue is a heap of timers, for container/heap.
type timerQueue []*timer

// Len is the number of timers.
func (q timerQueue) Len() int { return len(q) }

// Less says which is earlier.
func (q timerQueue) Less(i, j int) bool { return q[i].wake < q[j].wake }

// Swap swaps two timers.
func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push adds a *timer at the end.
func (q *timerQueue) Push(x any) {
	t, _ := x.(*timer)
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop takes the last timer away.
func (q *timerQueue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = -1
	return t
}
