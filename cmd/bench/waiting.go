package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// waits measures agents whose models do not answer: asked through the prompt endpoint,
// with a stream open for each, and sent through the input stream. What the node takes
// without them is subtracted. The askers are in the process: of the memory and the
// goroutines of an agent that is asked, theirs are a part. Messages are those that a
// subscriber of every subject receives, and are counted while CPU is not.
func (w *work) waits(l *bench.Lab, ctx context.Context) error {
	return l.With(ctx, "relaxed", func(ctx context.Context, s *bench.Store) error {
		return errors.Join(w.wait(ctx, l, s, "asked", true), w.wait(ctx, l, s, "sent", false))
	})
}

// wait measures a node before agents wait, and while they do.
func (w *work) wait(ctx context.Context, l *bench.Lab, s *bench.Store, how string, streamed bool) (err error) {
	l.Say("sync %s, %d agents that were %s: memory, goroutines, CPU", s.Sync, w.waiting, how)
	if err := s.Emptied(ctx); err != nil {
		return err
	}
	gate, reached := scripted.NewGate(), make(chan struct{}, w.waiting)
	node, err := s.Node(ctx, providers.Func(func(ctx context.Context, _ providers.Request, _ func(providers.Delta)) (providers.Response, error) {
		reached <- struct{}{}
		err := gate.Wait(ctx)
		return providers.Response{Items: []messages.Item{messages.Text(messages.RoleAssistant, bench.UserInput)}}, err
	}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	idle, err := quietly(ctx, s, waitWindows*l.Window)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var asks sync.WaitGroup
	defer asks.Wait()
	defer gate.Release()
	err = bench.Deal(ctx, 64, w.waiting, func(_ context.Context, _, i int) error {
		a := bench.AgentID(i, 0)
		if streamed {
			asks.Go(func() {
				if err := bench.Ask(ctx, node.Client(), a); err != nil {
					fail(err)
				}
			})
		} else if _, err := node.Client().Send(ctx, a.String(), messages.Input{Content: messages.TextContent(bench.UserInput)}); err != nil {
			return err
		}
		select {
		case <-reached:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(bench.Patience):
			return fmt.Errorf("no model call began within %v", bench.Patience)
		}
	})
	if err != nil {
		return err
	}
	full, err := quietly(ctx, s, waitWindows*l.Window)
	if err != nil {
		return err
	}
	row := func(figure string, value float64, unit string) bench.Row {
		return bench.Row{Figure: "waiting, " + how + ": " + figure, Agents: w.waiting, Sync: s.Sync, Value: value, Unit: unit}
	}
	return l.Add(
		row("heap and stacks of an agent", per(full.bytes-idle.bytes, w.waiting), "bytes"),
		row("goroutines of an agent", per(full.goroutines-idle.goroutines, w.waiting), "goroutines"),
		row("CPU of all", max(0, full.cores-idle.cores), "cores"),
		row("NATS messages of all", max(0, full.messages-idle.messages), "messages/s"),
	)
}

// waitWindows is how many windows a node is measured for that only waits.
const waitWindows = 5

// quiet is the cost of a process that only waits.
type quiet struct {
	bytes, goroutines int64
	cores, messages   float64
}

// quietly measures the process in two windows after one in which what happened before
// ends: first messages, then CPU, because to receive messages takes CPU.
func quietly(ctx context.Context, s *bench.Store, window time.Duration) (q quiet, err error) {
	bench.Sleep(ctx, window)
	var count atomic.Int64
	sub, err := s.Conns[1].Subscribe(">", func(*nats.Msg) { count.Add(1) })
	if err != nil {
		return q, err
	}
	bench.Sleep(ctx, window)
	q.messages = float64(count.Load()) / window.Seconds()
	if err := sub.Unsubscribe(); err != nil {
		return q, err
	}
	cpu := bench.CPUTime()
	bench.Sleep(ctx, window)
	q.cores = (bench.CPUTime() - cpu).Seconds() / window.Seconds()
	q.goroutines = int64(runtime.NumGoroutine())
	q.bytes = heap(ctx)
	return q, context.Cause(ctx)
}
