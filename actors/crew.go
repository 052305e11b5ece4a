package actors

import "time"

// crew runs mailboxes, and functions beside them, on goroutines that are used
// again: a new one would grow its stack anew for every message, append and call,
// which was a tenth of a turn's cost. It implements actor.Dispatcher. The zero
// value is not usable; see newCrew. Safe for concurrent use.
type crew struct{ work chan func() }

func newCrew() crew { return crew{make(chan func())} }

const (
	// patience is how long a goroutine without work stays.
	patience = time.Second
	// throughput is how many messages a mailbox handles before others may run:
	// what protoactor takes when nothing is said.
	throughput = 300
)

// Schedule runs a mailbox.
func (c crew) Schedule(mailbox func()) { c.run(mailbox) }

// Throughput is how many messages a mailbox handles before others may run.
func (c crew) Throughput() int { return throughput }

// run begins f at once, on an idle goroutine if there is one.
func (c crew) run(f func()) {
	select {
	case c.work <- f:
	default:
		go c.serve(f)
	}
}

func (c crew) serve(f func()) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		f()
		timer.Reset(patience)
		select {
		case f = <-c.work:
		case <-timer.C:
			return
		}
	}
}
