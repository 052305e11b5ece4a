package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
	"github.com/reprise-dev/reprise/providers/tool"
)

// thinking is how long a model of theirs takes, in the figure that has them
// work at a model's pace; in the other one they work as fast as they can.
const thinking = 500 * time.Millisecond

// interrupts measures how long an interrupt takes from the client's send to the
// end of the running tool's context.
func (l *lab) interrupts(ctx context.Context) error {
	return l.each(ctx, func(ctx context.Context, s *store) error {
		for _, c := range []struct {
			name  string
			busy  int
			model providers.Provider
		}{
			{"alone", 0, twoStep},
			{"others at a model's pace", l.Others, paced(twoStep, thinking)},
			{"others as fast as they can", l.Others, twoStep},
		} {
			l.say("sync %s: interrupts, %s", s.sync, c.name)
			took, err := l.interrupt(ctx, s, c.busy, c.model)
			if err != nil {
				return err
			}
			for _, q := range []struct {
				name string
				at   float64
			}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"most", 1}} {
				if err := l.out.add(Row{
					Figure: "interrupt to a tool's end, " + c.name + ", " + q.name, Agents: 1 + c.busy, Sync: s.sync,
					Value: milliseconds(quantile(took, q.at)), Unit: "ms",
				}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// paced is p with a pause before each answer.
func paced(p providers.Provider, pause time.Duration) providers.Provider {
	return providers.Func(func(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
		if r.Agent.Kind == kind {
			sleep(ctx, pause)
		}
		return p.Generate(ctx, r, emit)
	})
}

const heldKind = "held"

// interrupt gives the times, shortest first, of interrupts in a window in which
// busy agents work.
func (l *lab) interrupt(ctx context.Context, s *store, busy int, p providers.Provider) (took []time.Duration, err error) {
	if err := s.emptied(ctx); err != nil {
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
		return p.Generate(ctx, r, emit)
	})
	node, err := s.node(ctx, model, actors.Definition{Kind: heldKind, Model: modelName, Tools: []tool.Tool{hold}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	work, rest := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer rest()
	for w := range busy {
		wg.Go(func() {
			for n := 0; work.Err() == nil; n++ {
				_ = ask(work, node.Client(), agentID(w, n/turnsEach)) // its end comes with the window's
			}
		})
	}
	sleep(ctx, l.Window/3)
	person := client.New(s.conns[1], "") // on a connection that no agent uses
	for until := time.Now().Add(2 * l.Window); len(took) == 0 || time.Now().Before(until); {
		d, err := interruptOnce(ctx, person, len(took), running, ended)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	return took, nil
}

// interruptOnce lets an agent of its own run the tool, interrupts it, and gives
// the time from the one to the tool's end.
func interruptOnce(ctx context.Context, c *client.Client, n int, running <-chan struct{}, ended <-chan time.Time) (time.Duration, error) {
	agent := heldKind + "/a" + strconv.Itoa(n)
	if _, err := c.Send(ctx, agent, messages.Input{Content: messages.TextContent(userInput)}); err != nil {
		return 0, err
	}
	lost := time.After(patience)
	select {
	case <-running:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-lost:
		return 0, fmt.Errorf("the tool of %s did not begin within %v", agent, patience)
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
	case <-lost:
		return 0, fmt.Errorf("the interrupt did not reach the tool of %s within %v", agent, patience)
	}
}
