package cluster

import (
	"context"
	"fmt"
	"time"
)

// careAgain is how long a server runs at least before it is started once more.
const careAgain = 10 * time.Second

// watchServer looks, for as long as a node with a server of its own lives, whether
// that server stores what it is given. One whose disk was full does not, even when
// there is room again, and reports nothing: it is started again then.
func (n *Node) watchServer(context.Context) error {
	if n.server != nil {
		n.background(n.care)
	}
	return nil
}

// care looks after the server until ctx ends, and ends the node if it cannot be helped.
func (n *Node) care(ctx context.Context) {
	var started time.Time
	reported := false
	for range ticks(ctx, lookEvery) {
		ailing := n.server.Ailing()
		n.ailing.Store(&ailing)
		if ailing == nil {
			reported = false
			continue
		}
		room := n.server.Room()
		if !reported {
			reported = true
			n.cfg.Logger.Error("the embedded NATS server does not store what it is given; it is started again as soon as the data folder can be written to: make room on its disk",
				"data", n.cfg.Data, "error", ailing)
		}
		if room != nil || time.Since(started) < careAgain {
			continue
		}
		if err := n.server.Restart(); err != nil {
			n.fail(fmt.Errorf("the embedded NATS server could not write and does not come back (%w); nothing that was acknowledged is lost: see that there is room in %s, then start the node again", err, n.cfg.Data))
			return
		}
		started, reported = time.Now(), false
		n.ailing.Store(nil)
		n.limiter.always().Warn("the embedded NATS server was started again: the data folder can be written to", "data", n.cfg.Data)
	}
}

// unwritable returns why the embedded server did not store what it was given, when that was looked
// at last; nil: it did, or the node has none.
func (n *Node) unwritable() error {
	if ailing := n.ailing.Load(); ailing != nil {
		return *ailing
	}
	return nil
}
