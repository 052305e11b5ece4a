package bench

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"
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
		var next atomic.Int64
		if err := crowd(ctx, 64, func(ctx context.Context) (more bool, err error) {
			i := int(next.Add(1))
			if i > l.Idle {
				return false, nil
			}
			return true, ask(ctx, node.Client(), agentID(i, 0))
		}); err != nil {
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
		bytes := max(0, full-left-(empty-server))
		return l.out.add(Row{
			Figure: "memory of an idle active agent", Agents: l.Idle, Sync: s.sync,
			Value: float64(bytes) / float64(l.Idle), Unit: "bytes",
		})
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
