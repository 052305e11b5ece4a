package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// waits measures agents whose models do not answer: asked through the prompt endpoint,
// with a stream open for each, and sent through the input stream.
func (l *lab) waits(ctx context.Context) error {
	return l.with(ctx, "relaxed", func(ctx context.Context, s *store) error {
		if err := l.waiting(ctx, s, l.Waiting, true); err != nil {
			return err
		}
		return l.waiting(ctx, s, l.Waiting, false)
	})
}

// waiting measures a node before n agents wait, and while they do.
func (l *lab) waiting(ctx context.Context, s *store, n int, streamed bool) (err error) {
	name := "waiting, sent: "
	if streamed {
		name = "waiting, asked: "
	}
	l.say("sync %s, %d agents: %smemory, goroutines, CPU", s.sync, n, name)
	if err := s.emptied(ctx); err != nil {
		return err
	}
	w := &waiters{gate: scripted.NewGate(), reached: make(chan struct{}, n)}
	if w.node, err = s.node(ctx, w); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.node.Close()) }()
	idle, err := s.quiet(ctx, longer*l.Window)
	if err != nil {
		return err
	}
	ctx, w.fail = context.WithCancelCause(ctx)
	defer w.fail(nil)
	defer w.asks.Wait()
	defer w.gate.Release()
	if err := w.start(ctx, n, streamed); err != nil {
		return err
	}
	full, err := s.quiet(ctx, longer*l.Window)
	if err != nil {
		return err
	}
	row := func(figure string, value float64, unit string) Row {
		return Row{Figure: name + figure, Agents: n, Sync: s.sync, Value: value, Unit: unit}
	}
	each := func(full, idle int64) float64 { return float64(full-idle) / float64(n) }
	return l.out.add(
		row("heap and stacks of an agent", each(full.bytes, idle.bytes), "bytes"),
		row("goroutines of an agent", each(full.goroutines, idle.goroutines), "goroutines"),
		row("CPU of all", full.cores-idle.cores, "cores"),
		row("NATS messages of all", full.messages-idle.messages, "messages/s"),
	)
}

// waiters are agents in a model call that returns when the gate is released, and the provider of
// that model.
type waiters struct {
	node    *cluster.Node
	gate    *scripted.Gate
	reached chan struct{} // a message from each model call
	asks    sync.WaitGroup
	fail    context.CancelCauseFunc
}

// Generate waits for the gate.
func (w *waiters) Generate(ctx context.Context, _ providers.Request, _ func(providers.Delta)) (providers.Response, error) {
	w.reached <- struct{}{}
	err := w.gate.Wait(ctx)
	return providers.Response{Items: []messages.Item{messages.Text(messages.RoleAssistant, userInput)}}, err
}

// startedAtOnce is how many agents are on their way to their model calls at once.
const startedAtOnce = 64

// start brings n agents into their model calls.
func (w *waiters) start(ctx context.Context, n int, streamed bool) error {
	return deal(ctx, startedAtOnce, n, func(_ context.Context, _, i int) error {
		a := agentID(i, 0)
		if streamed {
			w.asks.Go(func() {
				if err := ask(ctx, w.node.Client(), a); err != nil {
					w.fail(err)
				}
			})
		} else if _, err := w.node.Client().Send(ctx, a.String(), messages.Input{Content: messages.TextContent(userInput)}); err != nil {
			return err
		}
		select {
		case <-w.reached:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(patience):
			return fmt.Errorf("no model call began within %v", patience)
		}
	})
}

// quiet is the cost of a process that only waits.
type quiet struct {
	bytes, goroutines int64
	cores, messages   float64
}

// quiet measures the process in two windows after one in which what happened before
// ends: first messages, then CPU, because to receive messages takes CPU.
func (s *store) quiet(ctx context.Context, window time.Duration) (q quiet, err error) {
	sleep(ctx, window)
	if q.messages, err = s.received(ctx, window); err != nil {
		return q, err
	}
	cpu := cpuTime()
	sleep(ctx, window)
	q.cores = (cpuTime() - cpu).Seconds() / window.Seconds()
	q.goroutines = int64(runtime.NumGoroutine())
	q.bytes = heap(ctx)
	return q, context.Cause(ctx)
}

// received returns how many messages a second a subscriber of every subject receives.
func (s *store) received(ctx context.Context, window time.Duration) (float64, error) {
	var count atomic.Int64
	sub, err := s.conns[1].Subscribe(">", func(*nats.Msg) { count.Add(1) })
	if err != nil {
		return 0, err
	}
	sleep(ctx, window)
	return float64(count.Load()) / window.Seconds(), sub.Unsubscribe()
}
