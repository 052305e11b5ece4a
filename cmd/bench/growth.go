package bench

import (
	"context"
	"errors"

	"github.com/reprise-dev/reprise/cluster"
)

// growthAgents is how many agents work at once in the figure growth.
const growthAgents = 8

var (
	// lengths are the turns of an agent at which its cost is measured.
	lengths = []int{10, 100, 250, 1000} // fewer in tests
	// growthTurns is how many turns are measured at each length, at least.
	growthTurns = 400 // fewer in tests
	// growthWarm is how many turns agents of their own do before each length.
	growthWarm = 50 // fewer in tests
)

// growth measures what a turn costs by the number of turns that its agent has had. The
// nodes keep no index: it is written every few seconds, in few of the windows.
func (l *lab) growth(ctx context.Context) error {
	return l.with(ctx, "relaxed", func(ctx context.Context, s *store) error {
		s.noIndex = true
		var baseCPU, baseBytes Row
		for i, length := range lengths {
			l.say("sync %s, %d agents: the cost of turn %d", s.sync, growthAgents, length)
			got, err := s.grown(ctx, length)
			if err != nil {
				return err
			}
			row := func(what string, value float64, unit string) Row {
				return Row{Figure: what + " of turn " + whole(length), Agents: growthAgents, Sync: s.sync, Value: value, Unit: unit}
			}
			cpu, bytes := row("CPU", got.cpuPer(1000), "ms"), row("bytes allocated", got.per(got.bytes), "bytes")
			if err := l.out.add(cpu.of(baseCPU.Value, baseCPU.Figure), bytes.of(baseBytes.Value, baseBytes.Figure)); err != nil {
				return err
			}
			if i == 0 {
				baseCPU, baseBytes = cpu, bytes
			}
		}
		return nil
	})
}

// grown measures the turns around a length. Short ones are measured with several
// generations of agents, one after the other.
func (s *store) grown(ctx context.Context, length int) (sum tally, err error) {
	if err := s.emptied(ctx); err != nil {
		return sum, err
	}
	node, err := s.node(ctx, twoStep)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := askEach(ctx, node, -1, growthWarm); err != nil {
		return sum, err
	}
	around := max(2, length/20)
	for generation := 0; sum.done < growthTurns; generation++ {
		if err := askEach(ctx, node, generation, length-around-1); err != nil {
			return sum, err
		}
		used := meter()
		if err := askEach(ctx, node, generation, 2*around+1); err != nil {
			return sum, err
		}
		cpu, c := used()
		sum.cpu, sum.bytes = sum.cpu+cpu, sum.bytes+c.bytes
		sum.done += growthAgents * (2*around + 1)
	}
	return sum, nil
}

// askEach lets each agent of a generation do so many turns.
func askEach(ctx context.Context, node *cluster.Node, generation, turns int) error {
	return deal(ctx, growthAgents, growthAgents, func(ctx context.Context, _, i int) error {
		for range turns {
			if err := ask(ctx, node.Client(), agentID(i, generation)); err != nil {
				return err
			}
		}
		return nil
	})
}
