package actors

import "time"

// dispatcher runs mailboxes, and functions beside them, on goroutines that are used
// again. A new one for each would grow its stack each time: see docs/decisions/0007. It
// implements actor.Dispatcher. The zero value is not usable; see newDispatcher. Safe for
// concurrent use.
type dispatcher struct{ work chan func() }

func newDispatcher() dispatcher { return dispatcher{make(chan func())} }

const (
	// idleGoroutine is how long a goroutine without work stays.
	idleGoroutine = time.Second
	// throughput is how many messages a mailbox handles before others may run, as in
	// protoactor's own dispatchers.
	throughput = 300
)

// Schedule runs a mailbox.
func (d dispatcher) Schedule(mailbox func()) { d.run(mailbox) }

// Throughput is how many messages a mailbox handles before others may run.
func (d dispatcher) Throughput() int { return throughput }

// run begins f at once, on an idle goroutine if there is one.
func (d dispatcher) run(f func()) {
	select {
	case d.work <- f:
	default:
		go d.serve(f)
	}
}

func (d dispatcher) serve(f func()) {
	timer := time.NewTimer(idleGoroutine)
	defer timer.Stop()
	for {
		f()
		timer.Reset(idleGoroutine)
		select {
		case f = <-d.work:
		case <-timer.C:
			return
		}
	}
}
