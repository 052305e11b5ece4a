package projections

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/reprise-dev/reprise/messages"
)

// Asks returns what the call asks for: equal texts are those of calls with the same tool and the
// same arguments, however these are written as JSON.
func (c *ToolCall) Asks() string { return c.Tool + "\x00" + CanonicalJSON(c.Arguments) }

// Sum returns a digest of Asks. 0: the tool only reads, so that a repeat does no harm.
func (c *ToolCall) Sum() int64 {
	if c.OnUnknown == messages.ReadOnly {
		return 0
	}
	sum := sha256.Sum256([]byte(c.Asks()))
	return int64(binary.BigEndian.Uint64(sum[:]) | 1)
}

// MayHaveActed reports whether the tool was called and has not reported that the call had no
// effect. Such a report does not count if it is about the last of several runs, or if a person has decided that
// the call failed: the runs before may have had an effect, and the person may be wrong.
func (c *ToolCall) MayHaveActed() bool {
	reported := c.By == messages.ByReconcile || c.By == "" && c.Attempt <= 1
	return c.Started != 0 && !c.Dry && !(reported && c.Kind.NoEffect())
}

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
