package eventlog

import (
	"context"
	"errors"

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

// Removed says that the agent's frame with that sequence, which was there, is not in
// the log any more: a delete has purged it.
func Removed(ctx context.Context, log Finder, a messages.AgentID, seq uint64) (bool, error) {
	_, err := log.FrameAt(ctx, a, seq)
	damage := new(DamageError)
	switch {
	case err == nil || errors.As(err, &damage): // it is there
		return false, nil
	case messages.AsError(err).Code == messages.NotFound:
		return true, nil
	}
	return false, err
}
