package integrity

import (
	"context"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// sample is how far each partition went at a time.
type sample struct {
	at        time.Time
	positions [messages.Partitions]natslog.Position
}

// record records how far the partitions are until ctx ends.
func (g *Monitor) record(ctx context.Context) {
	mark := time.Tick(markEvery)
	for {
		select {
		case <-mark:
			g.markAll(ctx, g.onDisk(g.sample()))
		case <-ctx.Done():
			return
		}
	}
}

// sample returns how far each partition is now. The time of a tick may be seconds ago: a sample that
// seems older than it is would be recorded before it is on disk.
func (g *Monitor) sample() sample {
	s := sample{at: time.Now()}
	for p := range s.positions {
		s.positions[p] = g.log.Position(messages.Partition(p))
	}
	return s
}

// onDisk keeps a sample, and returns the newest one that is at least lag old. Without one
// nothing is known to be on disk.
func (g *Monitor) onDisk(s sample) sample {
	if g.lag == 0 {
		return s
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.samples = append(g.samples, s)
	var old sample
	for len(g.samples) > 0 && s.at.Sub(g.samples[0].at) >= g.lag {
		old, g.samples = g.samples[0], g.samples[1:]
	}
	return old
}

// markAll records how far the partitions were.
func (g *Monitor) markAll(ctx context.Context, s sample) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	var writes sync.WaitGroup
	free := make(chan struct{}, marksAtOnce)
	for p, at := range s.positions {
		if at.Last == 0 || at.Last <= g.log.Marked(messages.Partition(p)) {
			continue
		}
		free <- struct{}{}
		writes.Go(func() {
			g.mark(ctx, messages.Partition(p), at)
			<-free
		})
	}
	writes.Wait()
}

func (g *Monitor) mark(ctx context.Context, p messages.Partition, at natslog.Position) {
	if err := g.log.Mark(ctx, p, at); err != nil {
		g.logger.Debug("how far a partition is stored cannot be recorded now", "partition", p, "error", err)
	}
}

// Left records how far a partition was stored that this node gives up.
func (g *Monitor) Left(p messages.Partition) {
	if g.lag > 0 {
		return
	}
	if at := g.log.Position(p); at.Last > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), markEvery)
		defer cancel()
		g.mark(ctx, p, at)
	}
}
