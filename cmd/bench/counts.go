package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// counts is what the process did in a window: the embedded server, the node and its
// clients together.
type counts struct {
	// objects and bytes are those allocated on the heap, tiny objects included.
	objects, bytes uint64
	// runs is how many times a goroutine was given a processor.
	runs uint64
}

// meter begins to measure the process. The function that it returns reports the CPU
// time and the counts since then.
//
// The heap is read by runtime.ReadMemStats: unlike /gc/heap/allocs of runtime/metrics,
// it counts tiny objects and what lies in the caches of processors.
func meter() func() (time.Duration, counts) {
	before := read()
	cpu := cpuTime()
	return func() (time.Duration, counts) {
		used := cpuTime() - cpu
		now := read()
		return used, counts{now.objects - before.objects, now.bytes - before.bytes, now.runs - before.runs}
	}
}

func read() counts {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return counts{objects: m.Mallocs, bytes: m.TotalAlloc, runs: goroutineRuns()}
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
