package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// part is what the figure cluster measures on nodes that are there already. More
// than one node is needed for a part with more.
type part struct {
	name, about string
	more        bool
	run         func(*trial, context.Context) error
	// agents is how many are in mid-turn when a node is killed.
	agents int
}

// parts are run in this order. Those that need more nodes have nodes of their own,
// which have nothing to do yet.
var parts = []part{
	{name: "asks", about: "asks of an agent whose node has the door, and of another", run: (*trial).asks},
	{name: "turns", about: "turns of many agents over all nodes", run: (*trial).turns},
	{name: "leave", about: "a node leaves in order under a steady load", more: true, run: (*trial).leave},
	{name: "join", about: "a node joins under a steady load, and partitions move to it", more: true, run: (*trial).join},
	{name: killPart, about: "a node is killed while its agents are in mid-turn", more: true},
}

// killPart has nodes of its own for each number of agents.
const killPart = "kill"

// Parts lists the parts of the figure cluster.
func Parts() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

func (o *Options) clusterDefaults() error {
	if len(o.Nodes) == 0 {
		o.Nodes = []int{1, 2, 3}
	}
	if len(o.Replicas) == 0 {
		o.Replicas = []int{1, 3}
	}
	if len(o.Only) == 0 {
		o.Only = Parts()
	}
	if o.Settle == 0 {
		o.Settle = 8 * time.Second
	}
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return fmt.Errorf("the cluster has no part %q: choose of %s", name, strings.Join(Parts(), ", "))
		}
	}
	for _, n := range o.Nodes {
		if n < 1 || n > mostNodes {
			return fmt.Errorf("%d nodes on one machine: choose 1 to %d", n, mostNodes)
		}
	}
	for _, n := range o.Replicas {
		if n != 1 && n != 3 {
			return fmt.Errorf("%d replicas: choose 1, on one NATS server, or 3, on three", n)
		}
	}
	return nil
}

// mostNodes is how many nodes a machine is asked to run.
const mostNodes = 16

// cluster measures nodes in processes of their own, for each number of replicas and
// of nodes, in the first of the sync modes.
func (l *lab) cluster(ctx context.Context) error {
	for _, replicas := range l.Replicas {
		err := l.withServers(ctx, l.Sync[0], replicas, func(ctx context.Context, s *servers) error {
			killed := l.Held
			for _, nodes := range l.Nodes {
				if err := l.nodes(ctx, s, nodes, killed); err != nil {
					return fmt.Errorf("%d nodes on R%d: %w", nodes, replicas, err)
				}
				if err := l.out.flush(); err != nil {
					return err
				}
				if nodes > 1 {
					killed = killed[:1]
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nodes measures so many nodes, and kills one of them for each number of agents.
func (l *lab) nodes(ctx context.Context, s *servers, nodes int, killed []int) error {
	for _, chosen := range l.trials(nodes, killed) {
		t := &trial{lab: l, servers: s, nodes: nodes}
		if err := t.during(ctx, chosen...); err != nil {
			return err
		}
	}
	return nil
}

// trials are the parts that are wanted of so many nodes: those of a list are run on
// the same ones.
func (l *lab) trials(nodes int, killed []int) (all [][]part) {
	var calm, moving []part
	for _, p := range parts {
		switch {
		case !slices.Contains(l.Only, p.name) || p.more && nodes == 1:
		case p.name == killPart:
			for _, agents := range killed {
				all = append(all, []part{killing(agents)})
			}
		case p.more:
			moving = append(moving, p)
		default:
			calm = append(calm, p)
		}
	}
	return slices.DeleteFunc(append([][]part{calm, moving}, all...), func(chosen []part) bool { return len(chosen) == 0 })
}

func killing(agents int) part {
	return part{
		name: killPart, about: whole(agents) + " agents of a node are in mid-turn, and it is killed", more: true, agents: agents,
		run: func(t *trial, ctx context.Context) error { return t.kill(ctx, agents) },
	}
}

// trial is a cluster on servers that were emptied before.
type trial struct {
	*lab
	*servers
	nodes   int
	members []*member // those that run
	places  *places
	ceiling ceiling
}

// during starts the nodes, runs the parts one after the other, and ends the nodes.
func (t *trial) during(ctx context.Context, chosen ...part) (err error) {
	if err := t.rawBefore(ctx, chosen); err != nil {
		return err
	}
	if err := t.emptied(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if t.places, err = t.watch(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	if err := t.start(ctx); err != nil {
		return err
	}
	for _, p := range chosen {
		t.tell("%s", p.about)
		if err := p.run(t, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// tell tells what is being done.
func (t *trial) tell(format string, args ...any) {
	t.say("R%d, %d nodes: %s", t.store.replicas, t.nodes, fmt.Sprintf(format, args...))
}

// row is one of this cluster.
func (t *trial) row(figure string, agents int, value float64, unit string) Row {
	return Row{Figure: figure, Agents: agents, Sync: t.sync, Nodes: t.nodes, Replicas: t.store.replicas, Value: value, Unit: unit}
}
