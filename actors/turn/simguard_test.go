package turn_test

import (
	"fmt"
	"runtime/metrics"
	"testing"
	"time"
)

// mostMemory is more than any simulation needs.
const mostMemory = 1 << 30

// guard ends the process when a decision without end eats the memory that
// others on the machine need too. A life cannot be ended from outside.
func guard(t testing.TB) {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if metrics.Read(heap); heap[0].Value.Uint64() > mostMemory {
					panic(fmt.Sprintf("a simulation took more than %d MiB: a decision has no end", mostMemory>>20))
				}
			}
		}
	}()
}
