package bench

import (
	"context"
	"errors"
	"runtime/pprof"
	"time"

	"github.com/reprise-dev/reprise/providers"
)

// turnsEach is how many turns an agent does before its worker takes a new one.
const turnsEach = 25

const rawCPUName = "CPU per 4,000 raw appends"

// turns measures n agents at work between two windows of raw appends.
func (l *lab) turns(ctx context.Context, s *store, n int) error {
	l.say("sync %s, %d agents: raw appends and turns", s.sync, n)
	before, err := s.raw(ctx, n, l.Window/2)
	if err != nil {
		return err
	}
	got, writes, err := l.turnsAlone(ctx, s, n)
	if err != nil {
		return err
	}
	after, err := s.raw(ctx, n, l.Window/2)
	if err != nil {
		return err
	}
	row := func(figure string, value float64, unit string) Row {
		return Row{Figure: figure, Agents: n, Sync: s.sync, Value: value, Unit: unit}
	}
	raw := (before.rate() + after.rate()) / 2
	rawCPU := (before.cpuPer(4000) + after.cpuPer(4000)) / 2
	return l.out.add(
		row("raw appends", raw, "frames/s"),
		row("frames", got.rate()*writes, "frames/s").of(raw, "raw appends"),
		row("turns", got.rate(), "turns/s"),
		row("writes per turn", writes, "frames"),
		row("raw append p50", (before.ms(0.5)+after.ms(0.5))/2, "ms"),
		row("turn p50", got.ms(0.5), "ms"),
		row("turn p99", got.ms(0.99), "ms"),
		row("CPU per 1,000 turns", got.cpuPer(1000), "s").of(rawCPU, rawCPUName),
		row(rawCPUName, rawCPU, "s"),
		row("objects allocated per turn", got.per(got.objects), "objects"),
		row("bytes allocated per turn", got.per(got.bytes), "bytes"),
		row("goroutine runs per turn", got.per(got.runs), "runs"),
	)
}

// turnsAlone gives what was done and how many frames a turn took.
func (l *lab) turnsAlone(ctx context.Context, s *store, n int) (tally, float64, error) {
	stop, err := l.profile()
	if err != nil {
		return tally{}, 0, err
	}
	defer stop()
	return s.turns(ctx, twoStep, n, l.Window)
}

// profile writes a CPU profile until it is stopped, the first time it is called.
func (l *lab) profile() (stop func(), err error) {
	if l.Profile == nil {
		return func() {}, nil
	}
	w := l.Profile
	l.Profile = nil
	return pprof.StopCPUProfile, pprof.StartCPUProfile(w)
}

// turns starts a node on the emptied store and asks n agents, one ask each at
// a time.
func (s *store) turns(ctx context.Context, p providers.Provider, n int, window time.Duration) (got tally, writes float64, err error) {
	if err := s.emptied(ctx); err != nil {
		return got, 0, err
	}
	node, err := s.node(ctx, p)
	if err != nil {
		return got, 0, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	before, err := s.written(ctx)
	if err != nil {
		return got, 0, err
	}
	asked := make([]int, n)
	got, err = drive(ctx, n, window/3, window, func(ctx context.Context, w int) (time.Duration, error) {
		a := agentID(w, asked[w]/turnsEach)
		asked[w]++
		start := time.Now()
		err := ask(ctx, node.Client(), a)
		return time.Since(start), err
	})
	if err != nil {
		return got, 0, err
	}
	after, err := s.written(ctx)
	return got, float64(after-before) / float64(max(1, got.all)), err
}
