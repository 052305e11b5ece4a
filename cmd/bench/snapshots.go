package bench

import (
	"context"
	"slices"
)

// snapshots measures what leaving snapshots costs n agents at work: windows with
// and without them in turn.
func (l *lab) snapshots(ctx context.Context, s *store, n int) error {
	defer func() { s.snapshotEvery = 0 }()
	var with, without []float64
	for range 3 {
		l.say("sync %s, %d agents: turns with and without snapshots", s.sync, n)
		for _, side := range []struct {
			every int
			rates *[]float64
		}{{0, &with}, {-1, &without}} {
			s.snapshotEvery = side.every
			got, _, err := s.turns(ctx, twoStep, n, l.Window)
			if err != nil {
				return err
			}
			*side.rates = append(*side.rates, got.rate())
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	return l.out.add(
		Row{Figure: "turns without snapshots", Agents: n, Sync: s.sync, Value: without[1], Unit: "turns/s"},
		Row{Figure: "turns with snapshots", Agents: n, Sync: s.sync, Value: with[1], Unit: "turns/s"}.of(without[1], "turns without"),
	)
}
