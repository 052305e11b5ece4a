package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
)

// growing is how many agents work at once in the figure growth.
const growing = 8

// warmTurns is how many turns agents of their own do before each length.
const warmTurns = 50

// growth lets agents work up to a length, and then divides the CPU time and the bytes that
// the process allocates by the turns around that length: 8 to 12 for turn 10, 950 to 1,050
// for turn 1,000. The nodes keep no index: it is written every few seconds, in few of the
// windows.
func (w *work) growth(l *bench.Lab, ctx context.Context) error {
	return l.With(ctx, "relaxed", func(ctx context.Context, s *bench.Store) error {
		var baseCPU, baseBytes bench.Row
		for i, length := range w.lengths {
			l.Say("sync %s, %d agents: the cost of turn %d", s.Sync, growing, length)
			got, err := grown(ctx, s, length, w.turns)
			if err != nil {
				return err
			}
			row := func(what string, value float64, unit string) bench.Row {
				return bench.Row{Figure: what + " of turn " + bench.Whole(length), Agents: growing, Sync: s.Sync, Value: value, Unit: unit}
			}
			cpu, bytes := row("CPU", got.CPUPer(1000), "ms"), row("bytes allocated", got.Per(got.Bytes), "bytes")
			if err := l.Add(cpu.Of(baseCPU.Value, baseCPU.Figure), bytes.Of(baseBytes.Value, baseBytes.Figure)); err != nil {
				return err
			}
			if i == 0 {
				baseCPU, baseBytes = cpu, bytes
			}
		}
		return nil
	})
}

// grown measures so many turns around a length, at least. Short ones are measured with several
// generations of agents, one after the other; the first warms up.
func grown(ctx context.Context, s *bench.Store, length, turns int) (sum bench.Tally, err error) {
	if err := s.Emptied(ctx); err != nil {
		return sum, err
	}
	node, err := s.Node(ctx, bench.TwoStep, withoutIndex)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	askEach := func(generation, turns int) error {
		return bench.Deal(ctx, growing, growing, func(ctx context.Context, _, i int) error {
			for range turns {
				if err := bench.Ask(ctx, node.Client(), bench.AgentID(i, generation)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	around := max(2, length/20)
	if err := askEach(0, warmTurns); err != nil {
		return sum, err
	}
	for generation := 1; sum.Done < turns; generation++ {
		if err := askEach(generation, length-around-1); err != nil {
			return sum, err
		}
		used := bench.Meter()
		if err := askEach(generation, 2*around+1); err != nil {
			return sum, err
		}
		cpu, c := used()
		sum.CPU, sum.Bytes = sum.CPU+cpu, sum.Bytes+c.Bytes
		sum.Done += growing * (2*around + 1)
	}
	return sum, nil
}

// withoutIndex has a node keep no index: one that cannot be opened is left out. No folder
// can be made below a file.
func withoutIndex(c *cluster.Config) { c.IndexDir = filepath.Join(os.DevNull, "index") }
