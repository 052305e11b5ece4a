package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// heldKind is the kind of the agents that wait.
const heldKind = "held"

// interrupts measures how long an interrupt takes from the client's send to the
// end of the running tool's context: alone, while others work with models that take half a
// second, and while they work as fast as they can.
func (w *work) interrupts(l *bench.Lab, ctx context.Context) error {
	return l.Each(ctx, func(ctx context.Context, s *bench.Store) error {
		for _, c := range []struct {
			name string
			busy int
			pace time.Duration
		}{{"alone", 0, 0}, {"others at a model's pace", w.others, 500 * time.Millisecond}, {"others as fast as they can", w.others, 0}} {
			l.Say("sync %s: interrupts, %s", s.Sync, c.name)
			took, err := interruptAll(ctx, s, c.busy, c.pace, l.Window)
			if err != nil {
				return err
			}
			for _, q := range []struct {
				name string
				at   float64
			}{{"p50", 0.5}, {"p99", 0.99}} {
				if err := l.Add(bench.Row{
					Figure: "interrupt to a tool's end, " + c.name + ", " + q.name, Agents: 1 + c.busy, Sync: s.Sync,
					Value: bench.Milliseconds(bench.Quantile(took, q.at)), Unit: "ms",
				}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// interruptAll returns the times, shortest first, of interrupts in a window in which
// busy agents work.
func interruptAll(ctx context.Context, s *bench.Store, busy int, pace, window time.Duration) (took []time.Duration, err error) {
	if err := s.Emptied(ctx); err != nil {
		return nil, err
	}
	running, ended := make(chan struct{}, 1), make(chan time.Time, 1) // each is received once, unless the run is stopped
	hold := tool.New("hold", "Wait to be stopped", tool.ReadOnly, func(ctx context.Context, _ struct{}) (string, error) {
		running <- struct{}{}
		<-ctx.Done()
		ended <- time.Now()
		return "", context.Cause(ctx)
	})
	asksHold := scripted.Func(func(providers.Request) scripted.Step {
		return scripted.Ask(scripted.Call{Name: "hold", Arguments: "{}"})
	})
	model := providers.Func(func(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
		if r.Agent.Kind == heldKind {
			return asksHold.Generate(ctx, r, emit)
		}
		bench.Sleep(ctx, pace)
		return bench.TwoStep.Generate(ctx, r, emit)
	})
	node, err := s.Node(ctx, model, func(c *cluster.Config) { c.Agents = append(c.Agents, bench.Definition(heldKind, hold)) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	others, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for w := range busy {
		wg.Go(func() {
			for n := 0; others.Err() == nil; n++ {
				_ = bench.Ask(others, node.Client(), bench.AgentID(w, n/bench.TurnsEach)) // its end comes with the window's
			}
		})
	}
	bench.Sleep(ctx, window/3)
	person := client.New(s.Conns[1], "") // on a connection that no agent uses
	for until := time.Now().Add(2 * window); len(took) == 0 || time.Now().Before(until); {
		d, err := interruptOnce(ctx, person, heldKind+"/a"+strconv.Itoa(len(took)), running, ended)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	return took, nil
}

// interruptOnce lets an agent run the tool, interrupts it, and returns the time from the one
// to the tool's end.
func interruptOnce(ctx context.Context, c *client.Client, agent string, running <-chan struct{}, ended <-chan time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, bench.Patience, fmt.Errorf("no interrupt of the tool of %s within %v", agent, bench.Patience))
	defer cancel()
	if _, err := c.Send(ctx, agent, messages.Input{Content: messages.TextContent(bench.UserInput)}); err != nil {
		return 0, err
	}
	select {
	case <-running:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	start := time.Now()
	stopped := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, agent, messages.Interrupt{})
		stopped <- err
	}()
	select {
	case end := <-ended:
		return end.Sub(start), <-stopped
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
