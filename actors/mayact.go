package actors

import (
	"context"
	"errors"
	"time"
)

// mayActEvery is how often a call that waits looks whether it may begin.
const mayActEvery = 50 * time.Millisecond

var errMayNotAct = errors.New("it was not called: this node could not be sure any more that the agent is its own")

// mayAct waits until this node may act as the agent's owner, and is to be asked right
// before a call. An error says that the call must not be made: ctx has ended, which it
// also does when the agent stops because its partition is another node's.
func (a *agent) mayAct(ctx context.Context) error {
	if a.rt.may() {
		return ctx.Err() // behind the question: what was lost has been stopped before the answer was yes
	}
	a.rt.limited.warn(a.rt.logger, "a call waits until this node is sure again that the agent is its own", a.id.LogAttr(a.epoch))
	ticker := time.NewTicker(mayActEvery)
	defer ticker.Stop()
	for !a.rt.may() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errMayNotAct
		}
	}
	return ctx.Err()
}
