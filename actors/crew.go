package actors

import "time"

// crew runs functions beside the mailboxes, on goroutines that are used again:
// a new one would grow its stack anew for every append and every call, which
// was a tenth of a turn's cost. The zero value is not usable; see newCrew.
// Safe for concurrent use.
type crew struct{ work chan func() }

func newCrew() crew { return crew{make(chan func())} }

// patience is how long a goroutine without work stays.
const patience = time.Second

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
