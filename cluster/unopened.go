package cluster

import (
	"context"
	"fmt"

	"github.com/reprise-dev/reprise/eventlog/doctor"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
)

// notOpened returns what is wrong with a stream that this node's own server was not given;
// nil: it was.
func (g *integrity) notOpened(stream string) *embedded.Examined {
	if g.unopened == nil {
		return nil
	}
	for _, x := range g.unopened() {
		if x.Stream == stream {
			return &x
		}
	}
	return nil
}

// unopenedLoss is what follows from files that are damaged.
func unopenedLoss(x embedded.Examined) *natslog.LossError {
	more := ""
	if n := len(x.Damage) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more places)", n)
	}
	return &natslog.LossError{
		Stream: x.Stream, Known: x.Known, Found: x.Last, Settled: true,
		Detail: fmt.Sprintf("its files are damaged, so it is not opened: %v%s", x.Damage[0], more),
	}
}

// mostPlaces is how many places of one stream doctor names.
const mostPlaces = 100

// places gives a finding for each damaged place of a stream that is not opened.
func (g *integrity) places(x embedded.Examined) (found []doctor.Finding) {
	for i, p := range x.Damage {
		if i == mostPlaces {
			found[i-1].Detail += fmt.Sprintf("; %d more places are not listed", len(x.Damage)-mostPlaces)
			break
		}
		found = append(found, doctor.Finding{
			Check: "store", Status: doctor.Fail, Agent: p.Agent, Stream: x.Stream, Seq: p.First,
			Detail: fmt.Sprintf("stream %s: %v; it is not opened, and its agents answer that they are damaged", x.Stream, p), Remedy: g.remedy(x.Stream),
		})
	}
	return found
}

// recordQuarantined puts on record what was taken out of the files of this node's server
// while it did not run.
func (n *Node) recordQuarantined(ctx context.Context) error {
	all, err := n.server.Quarantined()
	if err != nil {
		return err
	}
	for _, q := range all {
		if err := n.recordTaken(ctx, q); err != nil {
			return fmt.Errorf("record what was taken out of stream %s: %w", q.Stream, err)
		}
	}
	return nil
}

func (n *Node) recordTaken(ctx context.Context, q embedded.Quarantined) error {
	places := make([]natslog.Quarantined, 0, len(q.Places))
	for _, p := range q.Places {
		n.cfg.Logger.Error("a message that could not be read was taken out of the store", "stream", q.Stream, "place", p.String(), "copy", q.Folder)
		taken := natslog.Quarantined{ID: q.ID, First: p.First, Last: p.Last}
		if p.First == p.Last { // else frames of others may have been there as well
			taken.Agent = p.Agent
		}
		if p.Last > 0 {
			places = append(places, taken)
		}
	}
	for p := range messages.Partition(messages.Partitions) {
		if n.streams.Names().Log(p) == q.Stream && len(places) > 0 {
			if err := n.streams.Quarantine(ctx, natslog.Shard(p), q.ID, places); err != nil {
				return err
			}
			break
		}
	}
	return n.server.Recorded(q)
}
