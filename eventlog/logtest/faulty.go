package logtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog"
)

// Fault is what befalls one append.
type Fault int

// The faults.
const (
	Pass        Fault = iota // none
	LoseRequest              // nothing is stored, the caller gets ErrLost
	LoseAck                  // the frame is stored, the caller gets ErrLost
	Delay                    // the caller gets ErrLost; the request arrives just before the next append
	Double                   // the request arrives twice, the caller gets the second answer

	SlowRequest  // the request arrives after a lag
	SlowAck      // the request arrives at once, its answer after a lag
	Timeout      // nothing is stored, the caller gets ErrLost after a lag
	SlowLoseAck  // the frame is stored, the caller gets ErrLost after a lag
	SlowDelivery // as Delay, but the caller gets ErrLost after a lag
)

// ErrLost is the error of an append whose outcome a fault has made unknown.
var ErrLost = errors.New("logtest: the answer was lost")

// Faulty is a log whose appends meet faults. Make it with [NewFaulty]. Safe for concurrent use.
type Faulty struct {
	of eventlog.Store
	eventlog.Log
	// Lag is how long a slow fault takes; an append whose context ends sooner
	// gets ErrLost then. Set it before the first append. Zero: no time.
	Lag  time.Duration
	mu   sync.Mutex
	plan []Fault
	late []func()
}

// NewFaulty wraps a store so that its n-th append meets the n-th fault of the plan;
// those after its end pass.
func NewFaulty(store eventlog.Store, plan ...Fault) *Faulty {
	return &Faulty{of: store, Log: store.Log, plan: plan}
}

// Store returns the store with this log.
func (f *Faulty) Store() eventlog.Store {
	store := f.of
	store.Log = f
	return store
}

// Plan returns n faults that depend on the seed alone, none of them slow.
func Plan(seed uint64, n int) []Fault {
	return PlanOf(seed, n, Pass, LoseRequest, LoseAck, Delay, Double)
}

// PlanOf returns n faults of the given ones; they depend on the seed alone.
func PlanOf(seed uint64, n int, of ...Fault) []Fault {
	r, plan := rand.New(rand.NewPCG(seed, 0)), make([]Fault, n)
	for i := range plan {
		plan[i] = of[r.IntN(len(of))]
	}
	return plan
}

// Heal drops the rest of the plan. What is on its way arrives at the next append.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = nil
}

// Append appends as the next fault of the plan has it.
func (f *Faulty) Append(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	fault, late := f.next(ctx, e)
	for _, arrive := range late {
		arrive()
	}
	switch fault {
	case LoseRequest, Delay:
		return eventlog.Position{}, ErrLost
	case Timeout, SlowDelivery:
		f.lag(ctx)
		return eventlog.Position{}, ErrLost
	case LoseAck:
		_, _ = f.Log.Append(ctx, e) // its answer is what gets lost
		return eventlog.Position{}, ErrLost
	case SlowLoseAck:
		_, _ = f.Log.Append(ctx, e)
		f.lag(ctx)
		return eventlog.Position{}, ErrLost
	case SlowRequest:
		if !f.lag(ctx) {
			return eventlog.Position{}, ErrLost
		}
	case SlowAck:
		return f.slowly(ctx, e)
	case Double:
		_, _ = f.Log.Append(ctx, e) // the second answer counts
	}
	return f.Log.Append(ctx, e)
}

// slowly appends at once and answers later.
func (f *Faulty) slowly(ctx context.Context, e eventlog.Entry) (eventlog.Position, error) {
	tail, err := f.Log.Append(ctx, e)
	if !f.lag(ctx) {
		return eventlog.Position{}, ErrLost
	}
	return tail, err
}

// lag waits, and reports whether ctx lasted as long.
func (f *Faulty) lag(ctx context.Context) bool {
	select {
	case <-time.After(f.Lag):
		return true
	case <-ctx.Done():
		return false
	}
}

// next takes the next fault, and the requests that arrive before this one.
func (f *Faulty) next(ctx context.Context, e eventlog.Entry) (fault Fault, late []func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late, f.late = f.late, nil
	if len(f.plan) > 0 {
		fault, f.plan = f.plan[0], f.plan[1:]
	}
	if fault == Delay || fault == SlowDelivery {
		f.late = append(f.late, func() { _, _ = f.Log.Append(context.WithoutCancel(ctx), e) })
	}
	return fault, late
}
