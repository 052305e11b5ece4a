package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// work does one piece for a worker and says how long it took.
type work func(ctx context.Context, worker int) (took time.Duration, err error)

// tally is what was done in a window.
type tally struct {
	window time.Duration
	done   int
	// all counts what was done before and after the window, too.
	all int
	cpu time.Duration
	counts
	// latencies of what was done in the window, shortest first.
	latencies []time.Duration
}

// rate is what was done a second.
func (t tally) rate() float64 { return float64(t.done) / t.window.Seconds() }

// cpuPer is the CPU time, in seconds, for n pieces.
func (t tally) cpuPer(n int) float64 {
	if t.done == 0 {
		return 0
	}
	return t.cpu.Seconds() * float64(n) / float64(t.done)
}

// per returns a count of the window divided by what was done in it.
func (t tally) per(count uint64) float64 { return float64(count) / float64(max(1, t.done)) }

// ms is a quantile of the latencies in milliseconds.
func (t tally) ms(q float64) float64 { return milliseconds(quantile(t.latencies, q)) }

// quantile of a sorted list, by nearest rank.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// patience is how long what was begun in a window may take after its end, and whatever
// else a run asks for.
const patience = 30 * time.Second

// drive lets n workers work, each on one piece at a time, and counts what ends
// in the window after the warm-up. What is under way at its end is waited for.
func drive(ctx context.Context, n int, warm, window time.Duration, do work) (tally, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, warm+window+patience,
		fmt.Errorf("nothing more came for %v: is the disk full, or the machine asleep?", patience))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	from := time.Now().Add(warm)
	end := from.Add(window)
	each := make([]tally, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := each[i].work(ctx, i, from, end, do); err != nil {
				fail(err)
			}
		})
	}
	cpu, counts := usedBetween(ctx, from, end)
	wg.Wait()
	if ctx.Err() != nil {
		return tally{}, context.Cause(ctx)
	}
	sum := tally{window: window, cpu: cpu, counts: counts}
	for _, t := range each {
		sum.done, sum.all = sum.done+t.done, sum.all+t.all
		sum.latencies = append(sum.latencies, t.latencies...)
	}
	slices.Sort(sum.latencies)
	return sum, nil
}

func (t *tally) work(ctx context.Context, worker int, from, end time.Time, do work) error {
	for now := time.Now(); t.all == 0 || now.Before(end); { // one at least, however late it begins
		took, err := do(ctx, worker)
		if err != nil {
			return err
		}
		t.all++
		if now = time.Now(); now.After(from) && !now.After(end) {
			t.done++
			t.latencies = append(t.latencies, took)
		}
	}
	return nil
}

// usedBetween waits until end and returns the CPU time that the process used after
// from, and what it did in that time.
func usedBetween(ctx context.Context, from, end time.Time) (time.Duration, counts) {
	sleep(ctx, time.Until(from))
	used := meter()
	sleep(ctx, time.Until(end))
	return used()
}

// sleep pauses for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// crowd lets n workers do until there is no more to do or one fails.
func crowd(ctx context.Context, n int, do func(context.Context) (more bool, err error)) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for more := true; more && ctx.Err() == nil; {
				var err error
				if more, err = do(ctx); err != nil {
					fail(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
