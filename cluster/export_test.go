package cluster

import (
	"context"
	"time"

	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/messages"
)

// Closed reports whether the node was closed, or has begun to.
func (n *Node) Closed() bool { return n.ending.Load() }

// Unready are the reasons why the node is not ready.
func (n *Node) Unready() []gateway.Reason { return n.unready() }

// Marked reports whether all that was stored in a partition is on record.
func (n *Node) Marked(p messages.Partition) bool { return n.streams.Marked(p) >= n.streams.Acked(p) }

// Indexed reports whether the index holds all that is known of this node's partitions.
func (n *Node) Indexed(context.Context) bool { return n.index.behind() == 0 }

// CheckAll checks all streams of the log.
func (n *Node) CheckAll(ctx context.Context) {
	n.integrity.CheckAll(ctx)
}

// ScrubAt reads the streams of the log through that are due at a time, as the node does
// now and then by its clock.
func (n *Node) ScrubAt(ctx context.Context, now time.Time) { n.integrity.Scrub(ctx, now) }
