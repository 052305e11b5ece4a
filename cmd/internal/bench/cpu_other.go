//go:build !unix

package bench

import "time"

// CPUTime is not known here: figures of CPU are zero.
func CPUTime() time.Duration { return 0 }
