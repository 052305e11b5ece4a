package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// careEvery is how often a node looks whether its own server still stores.
	careEvery = time.Second
	// careAgain is how long a server runs at least before it is started once more.
	careAgain = 10 * time.Second
)

// watchServer looks, for as long as a node with a server of its own lives, whether
// that server stores what it is given. One whose disk was full does not, even when
// there is room again, and nobody is told: it is started again then.
func (n *Node) watchServer(context.Context) error {
	if n.server == nil {
		return nil
	}
	watching, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	n.onClose(func() { cancel(); running.Wait() })
	running.Go(func() {
		if err := n.careUntil(watching); err != nil {
			n.fail(err)
			go n.undo() // it waits for this
		}
	})
	return nil
}

// careUntil cares for the server until ctx ends or it cannot be helped, which is
// its error.
func (n *Node) careUntil(ctx context.Context) error {
	every := time.NewTicker(careEvery)
	defer every.Stop()
	var started time.Time
	told := false
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
		ailing := n.server.Ailing()
		if ailing == nil {
			told = false
			continue
		}
		room := n.server.Room()
		if !told {
			told = true
			n.cfg.Logger.Error("the embedded NATS server does not store what it is given; it is started again as soon as the data folder can be written to: make room on its disk",
				"data", n.cfg.Data, "error", ailing)
		}
		if room != nil || time.Since(started) < careAgain {
			continue
		}
		if err := n.server.Restart(); err != nil {
			return fmt.Errorf("the embedded NATS server could not write and does not come back (%w); nothing that was acknowledged is lost: see that there is room in %s, then start the node again", err, n.cfg.Data)
		}
		started, told = time.Now(), false
		n.calm.always().Warn("the embedded NATS server was started again: the data folder can be written to", "data", n.cfg.Data)
	}
}
