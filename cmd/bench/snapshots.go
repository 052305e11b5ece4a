package main

import (
	"context"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
)

// variants are nodes that leave something out, and one that leaves out nothing.
var variants = []struct {
	name   string
	change func(*cluster.Config)
}{
	{"turns without snapshots and index", func(c *cluster.Config) { withoutIndex(c); c.SnapshotEvery = -1 }},
	{"turns with snapshots", withoutIndex},
	{"turns with snapshots and index", func(*cluster.Config) {}},
}

// longer is how much longer the windows of variants are than others: the index is written
// every few seconds when much is done.
const longer = 5

// snapshots measures what leaving snapshots and keeping the index cost agents at work. The
// variants take turns, and none is always the first; each ratio is the median of those of
// the rounds.
func (w *work) snapshots(l *bench.Lab, ctx context.Context) error {
	return l.Cells(ctx, func(ctx context.Context, s *bench.Store, n int) error {
		got := make([][]bench.Tally, len(variants))
		for round := range w.rounds {
			l.Say("sync %s, %d agents: turns with and without snapshots and index, %d of %d", s.Sync, n, round+1, w.rounds)
			for i := range variants {
				v := (round + i) % len(variants)
				tally, _, err := s.Turns(ctx, bench.TwoStep, n, bench.TurnsEach, longer*l.Window, variants[v].change)
				if err != nil {
					return err
				}
				got[v] = append(got[v], tally)
			}
		}
		for i, v := range variants {
			for _, what := range []struct {
				name, unit string
				of         func(bench.Tally) float64
			}{
				{v.name, "turns/s", bench.Tally.Rate},
				{v.name + ": CPU per 1,000 turns", "s", func(t bench.Tally) float64 { return t.CPUPer(1000) }},
			} {
				var values, ratios []float64
				for round := range got[i] {
					value, base := what.of(got[i][round]), what.of(got[0][round])
					if values = append(values, value); i > 0 && value > 0 && base > 0 {
						ratios = append(ratios, value/base)
					}
				}
				row := bench.Row{Figure: what.name, Agents: n, Sync: s.Sync, Value: median(values), Unit: what.unit}
				if len(ratios) > 0 {
					row.Ratio, row.RatioTo = median(ratios), "turns without both"
				}
				if err := l.Add(row); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
