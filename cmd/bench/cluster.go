package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/messages"
)

// parts are those of the figure cluster, each with nodes of its own.
var parts = []string{"asks", "turns", "leave", "join", "kill"}

// cluster measures nodes in processes of their own, for each number of replicas and
// of nodes, in the first of the sync modes.
func (w *work) cluster(l *bench.Lab, ctx context.Context) error {
	for _, replicas := range w.replicas {
		err := l.WithServers(ctx, l.Sync[0], replicas, func(ctx context.Context, s *bench.Store) error {
			held := w.held
			for _, nodes := range w.nodes {
				t := &trial{work: w, Lab: l, Store: s, client: client.New(s.Conns[1], ""), nodes: nodes}
				if err := t.run(ctx, held); err != nil {
					return fmt.Errorf("%d nodes on R%d: %w", nodes, replicas, err)
				}
				if nodes > 1 {
					held = held[:1]
				}
			}
			return l.Flush()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// trial is a cluster of so many nodes.
type trial struct {
	*work
	*bench.Lab
	*bench.Store
	client  *client.Client
	nodes   int
	members []*member // those that run
}

// run runs the parts that are wanted, one after the other.
func (t *trial) run(ctx context.Context, held []int) error {
	for _, part := range t.only {
		var err error
		switch {
		case part == "asks":
			err = t.during(ctx, t.nodes, t.asks)
		case part == "turns":
			err = t.during(ctx, t.nodes, t.turns)
		case t.nodes == 1: // the others need more
		case part == "leave":
			err = t.during(ctx, t.nodes, t.leave)
		case part == "join":
			err = t.during(ctx, t.nodes-1, t.join)
		case part == "kill":
			for _, agents := range held {
				if err := t.killed(ctx, agents); err != nil {
					return fmt.Errorf("kill: %w", err)
				}
			}
		}
		if err := errors.Join(err, t.Flush()); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

// during starts nodes on empty streams for f, and ends them. What they have stored is not
// read any more.
func (t *trial) during(ctx context.Context, nodes int, f func(context.Context) error) (err error) {
	if err := t.Emptied(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if ctx.Err() == nil {
			err = errors.Join(err, t.running())
		}
		for _, m := range t.members {
			m.kill()
			err = errors.Join(err, m.stop(canceled, nil))
		}
		t.members = nil
	}()
	members, errs := make([]*member, nodes), make([]error, nodes)
	var wg sync.WaitGroup
	for i := range members {
		wg.Go(func() { members[i], errs[i] = t.launch(ctx, i) })
	}
	wg.Wait()
	t.members = slices.DeleteFunc(members, func(m *member) bool { return m == nil })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if _, err := t.placed(ctx); err != nil {
		return err
	}
	return f(ctx)
}

// canceled is for processes whose end is no error.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// member is a node in a process of its own.
type member struct {
	*child
	id string
}

// launch starts a node's process; it ends with ctx at the latest.
func (t *trial) launch(ctx context.Context, number int) (*member, error) {
	dir, err := os.MkdirTemp(t.Dir, "index-")
	if err != nil {
		return nil, err
	}
	c, err := begin(ctx, "node")
	if err != nil {
		return nil, err
	}
	m := &member{child: c}
	if err := c.say(nodeOrder{NATS: t.URLs[number%len(t.URLs)], Replicas: t.Replicas, IndexDir: filepath.Join(dir, strconv.Itoa(number))}); err != nil {
		return nil, err
	}
	return m, c.hear(2*bench.Patience, &m.id)
}

// running returns an error if a node has ended by itself.
func (t *trial) running() error {
	for _, m := range t.members {
		select {
		case <-m.ended:
			return fmt.Errorf("node %s ended unexpectedly: %w", m.id, m.failure())
		default:
		}
	}
	return nil
}

// without takes the node with the most partitions out of those that run.
func (t *trial) without(owners owners) *member {
	have := func(m *member) (n int) {
		for _, id := range owners {
			if id == m.id {
				n++
			}
		}
		return n
	}
	m := slices.MaxFunc(t.members, func(a, b *member) int { return have(a) - have(b) })
	t.members = slices.DeleteFunc(t.members, func(other *member) bool { return other == m })
	return m
}

// owners are the nodes that own the partitions.
type owners [messages.Partitions]string

// placed waits until the nodes that run own every partition, and each the ones that are meant
// for it.
func (t *trial) placed(ctx context.Context) (owners, error) {
	for begun := time.Now(); ; {
		if err := t.running(); err != nil {
			return owners{}, err
		}
		now, settled, err := t.owned(ctx)
		if settled || ctx.Err() != nil {
			return now, context.Cause(ctx)
		}
		if time.Since(begun) > 2*bench.Patience {
			return now, fmt.Errorf("after %v the partitions are not where they stay: %w, %v", 2*bench.Patience, err, now)
		}
		bench.Sleep(ctx, 20*time.Millisecond)
	}
}

// owned returns the owners, and whether all are those that they stay with. An error is one
// of the moment: nodes come and go.
func (t *trial) owned(ctx context.Context) (now owners, settled bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	rows := 0
	for line, err := range t.client.QueryStore(ctx, messages.Query{View: "partitions"}) {
		var row gateway.PartitionRow
		if err == nil {
			err = json.Unmarshal(line, &row)
		}
		if err != nil {
			return now, false, err
		}
		member := slices.ContainsFunc(t.members, func(m *member) bool { return m.id == row.Owner })
		if now[row.Partition] = row.Owner; member && row.Owner == row.MeantFor {
			rows++
		}
	}
	return now, rows == messages.Partitions, nil
}

// row is one of this cluster.
func (t *trial) row(figure string, agents int, value float64, unit string) bench.Row {
	return bench.Row{Figure: figure, Agents: agents, Sync: t.Sync, Nodes: t.nodes, Replicas: t.Replicas, Value: value, Unit: unit}
}

// oneEach is an agent of a kind for each partition.
func oneEach(kind string) (agents [messages.Partitions]messages.AgentID) {
	for n, missing := 0, len(agents); missing > 0; n++ {
		a := bench.AgentID(n, 0)
		a.Kind = kind
		if p := a.Partition(); agents[p] == (messages.AgentID{}) {
			agents[p] = a
			missing--
		}
	}
	return agents
}

// leave has the node with the most partitions stop in order while all agents are asked.
func (t *trial) leave(ctx context.Context) error {
	before, err := t.placed(ctx)
	if err != nil {
		return err
	}
	var gone float64
	asks, err := t.underLoad(ctx, func() error {
		begun := time.Now()
		if err := t.without(before).stop(ctx, nil); err != nil {
			return err
		}
		gone = bench.Milliseconds(time.Since(begun))
		_, err := t.placed(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return t.Add(append(t.pauses("leave", asks), t.row("leave: until it has gone", messages.Partitions, gone, "ms"))...)
}

// join starts one more node while all agents are asked.
func (t *trial) join(ctx context.Context) error {
	before, err := t.placed(ctx)
	if err != nil {
		return err
	}
	var after owners
	var serves, even float64
	asks, err := t.underLoad(ctx, func() error {
		begun := time.Now()
		m, err := t.launch(ctx, t.nodes-1)
		if m != nil {
			t.members = append(t.members, m)
		}
		if err != nil {
			return err
		}
		serves = bench.Milliseconds(time.Since(begun))
		after, err = t.placed(ctx)
		even = bench.Milliseconds(time.Since(begun))
		return err
	})
	if err != nil {
		return err
	}
	moved := slices.DeleteFunc(slices.Clone(asks), func(a asked) bool { return before[a.partition] == after[a.partition] })
	return t.Add(append(t.pauses("join", asks),
		t.row("join: from its start until it serves", messages.Partitions, serves, "ms"),
		t.row("join: from its start until shares are even", messages.Partitions, even, "ms"),
		t.row("moved partition: longest ask", messages.Partitions, longest(moved), "ms"),
	)...)
}

// pauses are the rows that a leave and a join have in common.
func (t *trial) pauses(what string, asks []asked) []bench.Row {
	failed := 0
	for _, a := range asks {
		if a.failed {
			failed++
		}
	}
	return []bench.Row{
		t.row(what+": longest ask", messages.Partitions, longest(asks), "ms"),
		t.row(what+": failed asks", messages.Partitions, float64(failed), "asks"),
		t.row(what+": asks", messages.Partitions, float64(len(asks)), "asks"),
	}
}

// longest is the time of the longest ask in milliseconds.
func longest(asks []asked) (ms float64) {
	for _, a := range asks {
		ms = max(ms, bench.Milliseconds(a.took))
	}
	return ms
}
