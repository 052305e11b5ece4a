package integrity

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
func (g *Monitor) notOpened(stream string) *embedded.Examined {
	if g.server == nil {
		return nil
	}
	for _, x := range g.server.Damaged() {
		if x.Stream == stream {
			return &x
		}
	}
	return nil
}

// Unopened returns the streams that this node's own server was not given.
func (g *Monitor) Unopened() (names []string) {
	if g.server == nil {
		return nil
	}
	for _, x := range g.server.Damaged() {
		names = append(names, x.Stream)
	}
	return names
}

// unopenedLoss is what follows from files that are damaged.
func unopenedLoss(x embedded.Examined) *natslog.LossError {
	more := ""
	if n := len(x.Damage) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return &natslog.LossError{
		Stream: x.Stream, Known: x.Known, Found: x.Last, Settled: true,
		Detail: fmt.Sprintf("its files are damaged, so it is not opened: %v%s", x.Damage[0], more),
	}
}

// mostPlaces is how many places of one stream doctor names.
const mostPlaces = 100

// places returns a finding for each damaged place of a stream that is not opened.
func (g *Monitor) places(x embedded.Examined) (found []doctor.Finding) {
	for i, p := range x.Damage {
		if i == mostPlaces {
			found[i-1].Detail += fmt.Sprintf("; damaged places not listed: %d", len(x.Damage)-mostPlaces)
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
func (g *Monitor) recordQuarantined(ctx context.Context, subjects messages.Subjects) error {
	all, err := g.server.Quarantined()
	if err != nil {
		return err
	}
	for _, q := range all {
		if g.notOpened(q.Stream) != nil { // its messages cannot be counted now
			continue
		}
		if err := g.recordTaken(ctx, subjects, q); err != nil {
			return fmt.Errorf("record what was taken out of stream %s: %w", q.Stream, err)
		}
	}
	return nil
}

func (g *Monitor) recordTaken(ctx context.Context, subjects messages.Subjects, q embedded.Quarantined) error {
	for _, p := range q.Places {
		g.logger.Error("a message that could not be read was taken out of the store", "stream", q.Stream, "place", p.String(), "copy", q.Folder)
	}
	places := q.Record()
	if !natslog.Ours(subjects, q.Stream) { // a node of that root records it
		return nil
	}
	for shard := range natslog.LogStreams {
		if g.log.ShardName(shard) == q.Stream && len(places) > 0 {
			if err := g.log.Quarantine(ctx, shard, q.ID, places); err != nil {
				return err
			}
		}
	}
	return g.server.Recorded(q)
}
