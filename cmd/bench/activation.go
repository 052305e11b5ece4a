package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// activation measures how long an agent that is not in memory takes from an
// ask to its model's call, which comes after the log was read and the turn's
// start stored. Its history is written by us, under the node's own epoch, so
// that there is nothing to take over.
func (l *lab) activation(ctx context.Context, s *store) (err error) {
	l.say("sync %s: activation", s.sync)
	if err := s.emptied(ctx); err != nil {
		return err
	}
	log, err := natslog.Open(ctx, natslog.Config{Conns: s.conns, Logger: s.logger})
	if err != nil {
		return err
	}
	clock := newClock(1)
	node, err := s.node(ctx, clock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	seeds, err := seed(ctx, node, log)
	if err != nil {
		return err
	}
	for _, events := range l.Events {
		took, err := passive(ctx, node, clock, seeds, events)
		if err != nil {
			return fmt.Errorf("activation with %d events: %w", events, err)
		}
		if err := l.out.add(Row{
			Figure: "activation with " + whole(events) + " events, p50", Agents: 1, Sync: s.sync,
			Value: milliseconds(quantile(took, 0.5)), Unit: "ms",
		}); err != nil {
			return err
		}
	}
	return nil
}

// spread is how many partitions, each in a stream of its own, the agents of an
// activation are written to.
const spread = 8

// seed lets an agent in each of these partitions do a turn, which tells the
// partition's epoch. What it gives are histories that have not begun.
func seed(ctx context.Context, node *cluster.Node, log eventlog.Log) ([]history, error) {
	var seeds []history
	for i := range spread {
		a := agentIn(messages.Partition(i*messages.Partitions/spread), 0)
		if err := ask(ctx, node.Client(), a); err != nil {
			return nil, err
		}
		tail, err := log.Tail(ctx, a)
		if err != nil {
			return nil, err
		}
		def, err := definitionOf(ctx, log, a)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, history{log: log, agent: a, def: def, epoch: tail.Epoch})
	}
	return seeds, nil
}

// agentIn is an agent of worker 0 in a partition, the first one from number on.
func agentIn(p messages.Partition, number int) messages.AgentID {
	for {
		if a := agentID(0, number); a.Partition() == p {
			return a
		}
		number++
	}
}

// passive writes agents with so many events, two for each seed or fewer if
// they are long, and asks each; their times come sorted.
func passive(ctx context.Context, node *cluster.Node, clock *clock, seeds []history, events int) ([]time.Duration, error) {
	turns := max(1, events/eventsPerTurn)
	n := 2 * len(seeds)
	if turns > 500 {
		n = 3
	}
	all := make([]history, n)
	for i := range all {
		of := seeds[i%len(seeds)]
		all[i] = history{log: of.log, def: of.def, epoch: of.epoch, agent: agentIn(of.agent.Partition(), 1000*events+1000*i)}
	}
	var next atomic.Int64
	if err := crowd(ctx, n, func(ctx context.Context) (bool, error) {
		i := int(next.Add(1)) - 1
		if i >= n {
			return false, nil
		}
		return true, all[i].turns(ctx, turns)
	}); err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range all {
		start := time.Now()
		if err := ask(ctx, node.Client(), all[i].agent); err != nil {
			return nil, err
		}
		took = append(took, clock.since(0, start))
	}
	slices.Sort(took)
	return took, nil
}
