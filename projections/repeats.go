package projections

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/reprise-dev/reprise/messages"
)

// Sum returns a digest of what the call asks for: calls with the same sum have the same tool and
// the same arguments, however these are written. 0: the tool only reads, so that a repeat does
// no harm.
func (c *ToolCall) Sum() int64 {
	if c.OnUnknown == messages.ReadOnly {
		return 0
	}
	sum := sha256.Sum256([]byte(c.Tool + "\x00" + CanonicalJSON(c.Arguments)))
	return int64(binary.BigEndian.Uint64(sum[:]) | 1)
}

// MayHaveActed reports whether the call was started and its tool has not reported that it had no
// effect.
func (c *ToolCall) MayHaveActed() bool { return c.Started != 0 && !c.Kind.NoEffect() }

// MarkRepeats sets Repeats of calls, which are all calls of one agent in the order in which its
// models asked for them.
func MarkRepeats(calls []Effect) {
	acted := make(map[int64]messages.EventNumber)
	for i := range calls {
		c := &calls[i]
		sum := c.Sum()
		if sum == 0 {
			continue
		}
		if c.Repeats = acted[sum]; c.MayHaveActed() {
			acted[sum] = c.N
		}
	}
}
