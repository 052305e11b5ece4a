package bench

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/reprise-dev/reprise/cluster"
)

// memory counts the bytes of idle agents that stay in memory. What the node
// takes without them, and what is left when it is gone, is measured in the same
// way and subtracted. The streams are emptied first: what the server keeps of
// them in its caches comes and goes and is not the agents'.
func (l *lab) memory(ctx context.Context) error {
	return l.with(ctx, "relaxed", func(ctx context.Context, s *store) (err error) {
		l.say("sync %s, %d agents: memory", s.sync, l.Idle)
		s.frames = nil
		server := heap(ctx)
		node, err := s.node(ctx, twoStep)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, node.Close()) }()
		empty := heap(ctx)
		if err := l.touchIdle(ctx, node); err != nil {
			return err
		}
		if err := s.emptied(ctx); err != nil {
			return err
		}
		full := heap(ctx)
		if err := node.Close(); err != nil {
			return err
		}
		left := heap(ctx)
		bytes := float64(max(0, full-left-(empty-server))) / float64(l.Idle)
		gone, err := l.gone(ctx, s)
		return errors.Join(err, l.out.add(
			Row{Figure: "memory of an idle active agent", Agents: l.Idle, Sync: s.sync, Value: bytes, Unit: "bytes"},
			Row{Figure: "memory of an agent that has left it", Agents: l.Idle, Sync: s.sync, Value: gone, Unit: "bytes"}.of(bytes, "an idle active one"),
		))
	})
}

// gone is what stays of agents that have left memory, in bytes each. The node is
// measured before they come and after they have gone; the streams are emptied.
func (l *lab) gone(ctx context.Context, s *store) (bytes float64, err error) {
	l.say("sync %s, %d agents: memory of agents that have left it", s.sync, l.Idle)
	cfg := s.config(twoStep)
	cfg.IdleAfter = forgetful
	node, err := cluster.Start(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	empty := heap(ctx)
	if err := l.touchIdle(ctx, node); err != nil {
		return 0, err
	}
	if err := rest(ctx, node); err != nil {
		return 0, err
	}
	if err := s.emptied(ctx); err != nil {
		return 0, err
	}
	return float64(max(0, heap(ctx)-empty)) / float64(l.Idle), nil
}

// touchIdle lets each of the agents do a turn.
func (l *lab) touchIdle(ctx context.Context, node *cluster.Node) error {
	return deal(ctx, 64, l.Idle, func(ctx context.Context, _, i int) error {
		return ask(ctx, node.Client(), agentID(i, 0))
	})
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
		sleep(ctx, 100*time.Millisecond)
	}
	return least
}
