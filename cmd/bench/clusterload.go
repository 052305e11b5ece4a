package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
)

const (
	// pace is how often each agent of a load is asked, unless the ask before takes longer.
	pace = 50 * time.Millisecond
	// askWithin bounds an ask of the load; one that takes longer has failed.
	askWithin = 10 * time.Second
)

// asked is one ask. What it took holds what its client waits before it asks again.
type asked struct {
	partition messages.Partition
	took      time.Duration
	failed    bool
}

// underLoad asks one agent of each partition again and again, makes a change, and returns the
// asks that ended after the change had begun.
func (t *trial) underLoad(ctx context.Context, change func() error) (asks []asked, err error) {
	agents := oneEach(plainKind)
	err = bench.Deal(ctx, len(agents), len(agents), func(ctx context.Context, _, i int) error {
		return bench.Ask(ctx, t.client, agents[i])
	})
	if err != nil {
		return nil, errors.Join(t.running(), err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	counting := false
	asking, stop := context.WithCancel(ctx)
	defer wg.Wait()
	defer stop()
	for p, a := range agents {
		wg.Go(func() {
			c := client.New(t.Conns[p%len(t.Conns)], "")
			bench.Sleep(asking, time.Duration(p)*pace/messages.Partitions) // not all at once
			for {
				start := time.Now()
				within, cancel := context.WithTimeout(asking, askWithin)
				err := bench.Ask(within, c, a)
				cancel()
				if asking.Err() != nil {
					return // it was cut off by us
				}
				mu.Lock()
				if counting {
					asks = append(asks, asked{messages.Partition(p), time.Since(start), err != nil})
				}
				mu.Unlock()
				bench.Sleep(asking, time.Until(start.Add(pace)))
			}
		})
	}
	bench.Sleep(ctx, t.Window)
	mu.Lock()
	counting = true
	mu.Unlock()
	err = change()
	bench.Sleep(ctx, t.Window/2)
	stop()
	wg.Wait()
	return asks, errors.Join(context.Cause(ctx), err)
}

// asks asks one agent after the other. The server chooses the endpoint that an ask goes
// through; nodes count the prompts at theirs, which distinguishes an ask of an agent at the
// endpoint's node from one of an agent at another.
func (t *trial) asks(ctx context.Context) error {
	owners, err := t.placed(ctx)
	if err != nil {
		return err
	}
	agents := oneEach(bench.Kind)
	counts, err := t.prompts(ctx)
	if err != nil {
		return err
	}
	var local, remote []time.Duration
	warm, until := time.Now().Add(t.Window/3), time.Now().Add(3*t.Window)
	missed := func() bool { return len(local) == 0 || len(remote) == 0 && t.nodes > 1 }
	for i := 0; missed() || time.Now().Before(until); i++ {
		a := agents[i%len(agents)]
		start := time.Now()
		if err := bench.Ask(ctx, t.client, a); err != nil {
			return errors.Join(t.running(), err)
		}
		took := time.Since(start)
		if start.After(until.Add(bench.Patience)) {
			return fmt.Errorf("of %d asks, %d came to the node that owns its agent, %d to another", i, len(local), len(remote))
		}
		before := counts
		if counts, err = t.prompts(ctx); err != nil {
			return err
		}
		switch owner := owners[a.Partition()]; {
		case start.Before(warm):
		case counts[owner] > before[owner]:
			local = append(local, took)
		default:
			remote = append(remote, took)
		}
	}
	slices.Sort(local)
	slices.Sort(remote)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		here := t.row("ask of an agent at the endpoint's node "+q.name, 1, bench.Milliseconds(bench.Quantile(local, q.at)), "ms")
		rows := []bench.Row{here}
		if t.nodes > 1 {
			there := t.row("ask of an agent at another node "+q.name, 1, bench.Milliseconds(bench.Quantile(remote, q.at)), "ms")
			rows = append(rows, there.Of(here.Value, "at the endpoint's node"))
		}
		if err := t.Add(rows...); err != nil {
			return err
		}
	}
	return nil
}

// prompts is how many prompts have come to each node, by the protocol of NATS services.
func (t *trial) prompts(ctx context.Context) (map[string]int, error) {
	counts := make(map[string]int, len(t.members))
	for _, m := range t.members {
		ctx, cancel := context.WithTimeout(ctx, bench.Patience)
		answer, err := t.Conns[2].RequestWithContext(ctx, "$SRV.STATS.agents."+m.id+"-"+bench.Kind, nil)
		cancel()
		if err != nil {
			return nil, errors.Join(t.running(), fmt.Errorf("ask node %s for its statistics: %w", m.id, err))
		}
		var stats micro.Stats
		if err := json.Unmarshal(answer.Data, &stats); err != nil {
			return nil, err
		}
		for _, e := range stats.Endpoints {
			counts[m.id] += e.NumRequests
		}
	}
	return counts, nil
}

// turns asks many agents at once, one ask each at a time. The CPU is that of the nodes, and
// of this process with its servers and clients.
func (t *trial) turns(ctx context.Context) error {
	clients := make([]*client.Client, len(t.Conns))
	for i, nc := range t.Conns {
		clients[i] = client.New(nc, "")
	}
	var pids []int
	for _, m := range t.members {
		pids = append(pids, m.cmd.Process.Pid)
	}
	turns := make([]int, t.others)
	got, nodes, err := driveBeside(ctx, pids, t.others, t.Window, 2*t.Window, func(ctx context.Context, w int) (time.Duration, error) {
		a := bench.AgentID(w, turns[w]/bench.TurnsEach)
		turns[w]++
		start := time.Now()
		err := bench.Ask(ctx, clients[w%len(clients)], a)
		return time.Since(start), err
	})
	if err != nil {
		return errors.Join(t.running(), err)
	}
	got.CPU += nodes
	return t.Add(
		t.row("turns", t.others, got.Rate(), "turns/s"),
		t.row("turn p50", t.others, got.MS(0.5), "ms"),
		t.row("turn p99", t.others, got.MS(0.99), "ms"),
		t.row("CPU per 1,000 turns", t.others, got.CPUPer(1000), "s"),
	)
}
