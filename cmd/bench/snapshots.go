package bench

import (
	"context"
	"slices"
)

// rounds is how many windows each kind of node gets, in turn with the others.
var rounds = 5 // fewer in tests

// longer is how much longer they are than others: the index is written
// every few seconds when much is done.
const longer = 5

// variant is a node that leaves something out, or nothing.
type variant struct {
	name          string
	snapshotEvery int
	noIndex       bool

	rates, cpu []float64 // of its windows
	// rateTo and cpuTo are those beside the ones of the plainest node in the same
	// round.
	rateTo, cpuTo []float64
}

// snapshots measures what leaving snapshots and keeping the index cost
// n agents at work.
func (l *lab) snapshots(ctx context.Context, s *store, n int) error {
	defer func() { s.snapshotEvery, s.noIndex = 0, false }()
	all := []*variant{
		{name: "turns without snapshots and index", snapshotEvery: -1, noIndex: true},
		{name: "turns with snapshots", noIndex: true},
		{name: "turns with snapshots and index"},
	}
	for round := range rounds {
		l.say("sync %s, %d agents: turns with and without snapshots and index, %d of %d", s.sync, n, round+1, rounds)
		for i := range all { // none is always the first
			v := all[(round+i)%len(all)]
			s.snapshotEvery, s.noIndex = v.snapshotEvery, v.noIndex
			got, _, err := s.turns(ctx, twoStep, n, longer*l.Window)
			if err != nil {
				return err
			}
			v.rates, v.cpu = append(v.rates, got.rate()), append(v.cpu, got.cpuPer(1000))
		}
		for _, v := range all {
			v.rateTo = append(v.rateTo, over(v.rates[round], all[0].rates[round])...)
			v.cpuTo = append(v.cpuTo, over(v.cpu[round], all[0].cpu[round])...)
		}
	}
	for _, v := range all {
		if err := l.out.add(v.rows(s.sync, n, all[0])...); err != nil {
			return err
		}
	}
	return nil
}

// rows are a variant's medians. A ratio is the median of those of the rounds, so
// that a moment in which the machine was busy spoils one of them alone.
func (v *variant) rows(sync string, n int, plain *variant) []Row {
	turns := Row{Figure: v.name, Agents: n, Sync: sync, Value: median(v.rates), Unit: "turns/s"}
	cpu := Row{Figure: v.name + ": CPU per 1,000 turns", Agents: n, Sync: sync, Value: median(v.cpu), Unit: "s"}
	if v != plain && len(v.rateTo) > 0 {
		turns.Ratio, turns.RatioTo = median(v.rateTo), "turns without both"
	}
	if v != plain && len(v.cpuTo) > 0 {
		cpu.Ratio, cpu.RatioTo = median(v.cpuTo), "turns without both"
	}
	return []Row{turns, cpu}
}

// over is the ratio of two figures, or nothing if there is none.
func over(figure, base float64) []float64 {
	if figure <= 0 || base <= 0 {
		return nil
	}
	return []float64{figure / base}
}

// median of a list, or 0 of an empty one.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
