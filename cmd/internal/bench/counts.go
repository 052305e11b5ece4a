package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Counts is what the process did in a window: the embedded server, the node and its
// clients together.
type Counts struct {
	// Objects and Bytes are those allocated on the heap, tiny objects included.
	Objects, Bytes uint64
	// Runs is how many times a goroutine was given a processor.
	Runs uint64
}

// Meter begins to measure the process. The function that it returns reports the CPU
// time and the counts since then.
//
// The heap is read by runtime.ReadMemStats: unlike /gc/heap/allocs of runtime/metrics,
// it counts tiny objects and what lies in the caches of processors.
func Meter() func() (time.Duration, Counts) {
	before := read()
	cpu := CPUTime()
	return func() (time.Duration, Counts) {
		used := CPUTime() - cpu
		now := read()
		return used, Counts{now.Objects - before.Objects, now.Bytes - before.Bytes, now.Runs - before.Runs}
	}
}

func read() Counts {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Counts{Objects: m.Mallocs, Bytes: m.TotalAlloc, Runs: goroutineRuns()}
}

// latencySample is how many runs of a goroutine the scheduler counts as one: it
// measures one in eight (gTrackingPeriod in runtime/runtime2.go).
const latencySample = 8

// goroutineRuns estimates how many times goroutines have begun to run in this process,
// by the number of latencies that the scheduler has measured. A goroutine that ends counts
// as up to one run more, so that short ones weigh more than they should.
func goroutineRuns() uint64 {
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	var measured uint64
	for _, n := range s[0].Value.Float64Histogram().Counts {
		measured += n
	}
	return measured * latencySample
}
