package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// logStreams is how many streams of the embedded server may be in fsync at once.
const logStreams = 16

// tune sets the Go runtime up for a node whose NATS server is inside it, unless
// the environment says otherwise (GOMAXPROCS, GOGC).
//
// A goroutine in fsync holds its place among GOMAXPROCS until the scheduler
// takes it away, which may take milliseconds; with as many streams syncing as
// there are places, everything else waits. So each stream gets one more place.
// `GOMAXPROCS=4 reprise bench turns --sync always` shows the difference.
func tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + logStreams)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}
