package bench

import (
	"context"
	"errors"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
)

// TurnsEach is how many turns an agent does before its worker takes a new one.
const TurnsEach = 25

const rawCPUName = "CPU per 4,000 raw appends"

// Turns is the figure of agents at work.
var Turns = Figure{
	"turns", "turns asked through the prompt endpoint beside raw appends: rate, latency, CPU, allocations",
	func(l *Lab, ctx context.Context) error { return l.Cells(ctx, l.turns) },
}

// turns measures n agents at work between two windows of raw appends.
func (l *Lab) turns(ctx context.Context, s *Store, n int) error {
	l.Say("sync %s, %d agents: raw appends and turns", s.Sync, n)
	before, err := s.Raw(ctx, n, l.Window/2)
	if err != nil {
		return err
	}
	got, writes, err := s.Turns(ctx, TwoStep, n, TurnsEach, l.Window)
	if err != nil {
		return err
	}
	after, err := s.Raw(ctx, n, l.Window/2)
	if err != nil {
		return err
	}
	row := func(figure string, value float64, unit string) Row {
		return Row{Figure: figure, Agents: n, Sync: s.Sync, Value: value, Unit: unit}
	}
	raw := (before.Rate() + after.Rate()) / 2
	rawCPU := (before.CPUPer(4000) + after.CPUPer(4000)) / 2
	return l.Add(
		row("raw appends", raw, "frames/s"),
		row("frames", got.Rate()*writes, "frames/s").Of(raw, "raw appends"),
		row("turns", got.Rate(), "turns/s"),
		row("writes per turn", writes, "frames"),
		row("raw append p50", (before.MS(0.5)+after.MS(0.5))/2, "ms"),
		row("turn p50", got.MS(0.5), "ms"),
		row("turn p99", got.MS(0.99), "ms"),
		row("CPU per 1,000 turns", got.CPUPer(1000), "s").Of(rawCPU, rawCPUName),
		row(rawCPUName, rawCPU, "s"),
		row("objects allocated per turn", got.Per(got.Objects), "objects"),
		row("bytes allocated per turn", got.Per(got.Bytes), "bytes"),
		row("goroutine runs per turn", got.Per(got.Runs), "runs"),
	)
}

// Turns starts a node on the emptied store and asks n agents, one ask each at
// a time, for a window; each agent does so many turns. It returns what was done, and how many frames a turn took.
func (s *Store) Turns(ctx context.Context, p providers.Provider, n int, each int, window time.Duration, change ...func(*cluster.Config)) (got Tally, writes float64, err error) {
	if err := s.Emptied(ctx); err != nil {
		return got, 0, err
	}
	node, err := s.Node(ctx, p, change...)
	if err != nil {
		return got, 0, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	_, before, err := s.Lasts(ctx)
	if err != nil {
		return got, 0, err
	}
	asked := make([]int, n)
	got, err = Drive(ctx, n, window/3, window, func(ctx context.Context, w int) (time.Duration, error) {
		a := AgentID(w, asked[w]/each)
		asked[w]++
		start := time.Now()
		err := Ask(ctx, node.Client(), a)
		return time.Since(start), err
	})
	if err != nil {
		return got, 0, err
	}
	_, after, err := s.Lasts(ctx)
	return got, float64(after-before) / float64(max(1, got.All)), err
}
