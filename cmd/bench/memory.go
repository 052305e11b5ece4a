package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
)

// memory counts the bytes of idle agents that stay in memory, and what is left of agents
// that have left it. What the node takes without them is subtracted. The streams are
// emptied before each measurement: what the server keeps of them in its caches comes and goes
// and is not the agents'.
func (w *work) memory(l *bench.Lab, ctx context.Context) error {
	return l.With(ctx, "relaxed", func(ctx context.Context, s *bench.Store) error {
		l.Say("sync %s, %d agents: memory", s.Sync, w.idle)
		held, err := w.weigh(ctx, s, false)
		if err != nil {
			return err
		}
		gone, err := w.weigh(ctx, s, true)
		return errors.Join(err, l.Add(
			bench.Row{Figure: "memory of an idle active agent", Agents: w.idle, Sync: s.Sync, Value: held, Unit: "bytes"},
			bench.Row{Figure: "memory of an agent that has left it", Agents: w.idle, Sync: s.Sync, Value: gone, Unit: "bytes"}.Of(held, "an idle active one"),
		))
	})
}

// weigh returns what an agent takes in a node that keeps agents, or lets them leave.
func (w *work) weigh(ctx context.Context, s *bench.Store, leave bool) (bytes float64, err error) {
	var change []func(*cluster.Config)
	if leave {
		change = append(change, forgetful)
	}
	node, err := s.Node(ctx, bench.TwoStep, change...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	empty := heap(ctx)
	err = bench.Deal(ctx, 64, w.idle, func(ctx context.Context, _, i int) error {
		return bench.Ask(ctx, node.Client(), bench.AgentID(i, 0))
	})
	if err == nil && leave {
		err = rest(ctx, node)
	}
	if err == nil {
		err = s.Emptied(ctx)
	}
	return per(heap(ctx)-empty, w.idle), err
}

// idleAfter is how long agents are idle before they leave a forgetful node.
const idleAfter = 100 * time.Millisecond

// forgetful has agents leave the node's memory soon.
func forgetful(c *cluster.Config) { c.IdleAfter = idleAfter }

// rest waits until no agent is in the node's memory.
func rest(ctx context.Context, node *cluster.Node) error {
	for node.InMemory() > 0 && ctx.Err() == nil {
		bench.Sleep(ctx, idleAfter/20)
	}
	return context.Cause(ctx)
}

// heap is what is in use after collection, stacks included, once it has
// stopped falling: the server lets go of its caches after seconds only.
func heap(ctx context.Context) int64 {
	const settled = 64 << 10
	least := int64(-1)
	for calm := 0; calm < 5 && ctx.Err() == nil; calm++ {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		now := int64(m.HeapAlloc + m.StackInuse)
		if least < 0 || now < least-settled {
			calm = 0
		}
		if least < 0 || now < least {
			least = now
		}
		bench.Sleep(ctx, 100*time.Millisecond)
	}
	return least
}
