package cli

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/providers/memory"
)

const (
	// syncing is how many goroutines more than cores may run while a server syncs each message.
	syncing = 4
	// garbage is how many percent the heap may grow between two collections.
	garbage = 400
)

// Tune sets the Go runtime up for a node whose embedded server syncs in a mode; empty: it
// has none. It leaves alone what the environment sets (GOMAXPROCS, GOGC, GOMEMLIMIT).
// Called again, it replaces what it set before.
//
//   - A goroutine in fsync keeps its place among GOMAXPROCS until the scheduler takes it
//     away, which may take milliseconds. So a server that syncs always gets a few places
//     more than there are cores. Without fsync they only cost CPU.
//   - Collecting garbage less often costs memory. The limit of three quarters of what the
//     process may use keeps that from being its end; the rest is for the cache of files.
//
// `GOMAXPROCS=2 GOGC=100 reprise bench turns` shows the difference.
func Tune(sync string) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
		if sync == string(embedded.SyncAlways) {
			runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + syncing)
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory.Machine() / 4 * 3)
	}
}
