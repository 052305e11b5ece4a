//go:build !unix

package bench

import "time"

// cpuTime is not known here: figures of CPU are zero.
func cpuTime() time.Duration { return 0 }
