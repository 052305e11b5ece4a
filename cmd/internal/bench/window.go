package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Work does one piece for a worker and says how long it took.
type Work func(ctx context.Context, worker int) (took time.Duration, err error)

// Tally is what was done in a window.
type Tally struct {
	Window time.Duration
	Done   int
	// All counts what was done before and after the window, too.
	All int
	CPU time.Duration
	Counts
	// Latencies of what was done in the window, shortest first.
	Latencies []time.Duration
}

// Rate is what was done a second.
func (t Tally) Rate() float64 { return float64(t.Done) / t.Window.Seconds() }

// CPUPer is the CPU time, in seconds, for n pieces.
func (t Tally) CPUPer(n int) float64 {
	return t.CPU.Seconds() * float64(n) / float64(max(1, t.Done))
}

// Per returns a count of the window divided by what was done in it.
func (t Tally) Per(count uint64) float64 { return float64(count) / float64(max(1, t.Done)) }

// MS is a quantile of the latencies in milliseconds.
func (t Tally) MS(q float64) float64 { return Milliseconds(Quantile(t.Latencies, q)) }

// Quantile of a sorted list, by nearest rank.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Milliseconds is d in those.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Patience is how long what was begun in a window may take after its end, and whatever
// else a run asks for.
const Patience = 30 * time.Second

// Drive lets n workers work, each on one piece at a time, and counts what ends
// in the window after the warm-up. What is under way at its end is waited for.
func Drive(ctx context.Context, n int, warm, window time.Duration, do Work) (Tally, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, warm+window+Patience,
		fmt.Errorf("nothing more came for %v: is the disk full, or the machine asleep?", Patience))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	from := time.Now().Add(warm)
	end := from.Add(window)
	each := make([]Tally, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := each[i].work(ctx, i, from, end, do); err != nil {
				fail(err)
			}
		})
	}
	Sleep(ctx, time.Until(from))
	used := Meter()
	Sleep(ctx, time.Until(end))
	cpu, counts := used()
	wg.Wait()
	if ctx.Err() != nil {
		return Tally{}, context.Cause(ctx)
	}
	sum := Tally{Window: window, CPU: cpu, Counts: counts}
	for _, t := range each {
		sum.Done, sum.All = sum.Done+t.Done, sum.All+t.All
		sum.Latencies = append(sum.Latencies, t.Latencies...)
	}
	slices.Sort(sum.Latencies)
	return sum, nil
}

func (t *Tally) work(ctx context.Context, worker int, from, end time.Time, do Work) error {
	for now := time.Now(); t.All == 0 || now.Before(end); { // one at least, however late it begins
		took, err := do(ctx, worker)
		if err != nil {
			return err
		}
		t.All++
		if now = time.Now(); now.After(from) && !now.After(end) {
			t.Done++
			t.Latencies = append(t.Latencies, took)
		}
	}
	return nil
}

// Sleep pauses for d or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Deal lets so many workers do n pieces, each once, until one fails.
func Deal(ctx context.Context, workers, n int, do func(ctx context.Context, worker, piece int) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := int(taken.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(taken.Add(1)) - 1 {
				if err := do(ctx, w, i); err != nil {
					fail(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
