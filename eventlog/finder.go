package eventlog

import (
	"context"

	"github.com/reprise-dev/reprise/messages"
)

// Finder reads single frames.
type Finder interface {
	// FrameAt gives the agent's frame with that sequence of the log, in a time that
	// does not depend on the length of the history; messages.NotFound if the agent
	// has none there. Its checksum is verified, and not that it follows the frame
	// before it: a *DamageError says what is wrong. Safe for concurrent use.
	FrameAt(ctx context.Context, a messages.AgentID, seq uint64) (Recorded, error)
}
