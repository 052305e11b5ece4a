package cli

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/reprise-dev/reprise/providers/memory"
)

// settings are what tune sets.
type settings struct {
	procs, garbage int
	limit          int64
}

// current returns the settings, and replaces them if others are given.
func current(others ...settings) settings {
	s := settings{runtime.GOMAXPROCS(0), debug.SetGCPercent(100), debug.SetMemoryLimit(-1)}
	debug.SetGCPercent(s.garbage)
	for _, o := range others {
		runtime.GOMAXPROCS(o.procs)
		debug.SetGCPercent(o.garbage)
		debug.SetMemoryLimit(o.limit)
	}
	return s
}

// A node gets places for fsync only where it syncs always, however often it is tuned, and
// what the environment sets stays.
func TestTune(t *testing.T) {
	before := current()
	t.Cleanup(func() { current(before) })
	for _, name := range []string{"GOMAXPROCS", "GOGC", "GOMEMLIMIT"} {
		t.Setenv(name, "")
	}
	runtime.SetDefaultGOMAXPROCS()
	cores, limit := runtime.GOMAXPROCS(0), memory.Machine()/4*3
	for _, c := range []struct {
		sync  string
		procs int
	}{{"always", cores + 4}, {"always", cores + 4}, {"relaxed", cores}, {"", cores}} {
		if Tune(c.sync); current() != (settings{c.procs, 400, limit}) {
			t.Errorf("sync %q: %+v, want %+v", c.sync, current(), settings{c.procs, 400, limit})
		}
	}
	chosen := settings{cores + 1, 50, 1 << 40}
	current(chosen)
	t.Setenv("GOMAXPROCS", "3") // their values count at the start of the process
	t.Setenv("GOGC", "50")
	t.Setenv("GOMEMLIMIT", "1TiB")
	if Tune("always"); current() != chosen {
		t.Errorf("%+v, want what the user has chosen: %+v", current(), chosen)
	}
}
