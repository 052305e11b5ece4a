package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) partitions() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "partitions", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "List the partitions of each node, and what waits in them",
		Long: `List how many of the partitions each node owns, how many agents they have, how many of those have
work to do, and how many stored inputs and commands have not been processed, with the age of the
oldest. With --all, and with -o json, each partition is a line, with the epoch under which it is
owned. The list is requested on the subject <root>.q, which an administrator may use.`,
		Example: `  reprise partitions
  reprise partitions --all`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all || a.json() {
				return a.runPartitions(cmd.Context())
			}
			return a.runShares(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print a line for each partition")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runPartitions(ctx context.Context) error {
	_, err := table(a, "PARTITION\tOWNER\tEPOCH\tAGENTS\tOWING\tWAITING\tIN HAND\tOLDEST", a.ofStore(ctx, "partitions"), func(p gateway.PartitionRow) string {
		owner, epoch := noOwner, ""
		if p.Owner != "" {
			owner, epoch = projections.Printable(p.Owner, 64), fmt.Sprint(p.Epoch)
		}
		if moves(p) {
			owner += " -> " + projections.Printable(p.MeantFor, 64)
		}
		return fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%d\t%d\t%s", p.Partition, owner, epoch, p.Agents, p.Owing, p.Waiting, p.InHand, since(p.Oldest, time.Now()))
	})
	return err
}

// noOwner is shown in place of the owner of a partition that has none.
const noOwner = "none"

// moves reports whether a partition is about to have another owner.
func moves(p gateway.PartitionRow) bool { return p.MeantFor != "" && p.MeantFor != p.Owner }

// runShares prints a line for each node.
func (a *app) runShares(ctx context.Context) error {
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	nodes, err := storeRows[gateway.NodeRow](ctx, c, "nodes")
	if err != nil {
		return err
	}
	partitions, err := storeRows[gateway.PartitionRow](ctx, c, "partitions")
	if err != nil {
		return err
	}
	a.columns(shares(nodes, partitions, time.Now()))
	return nil
}

// shares sums partitions by owner, with a head: every node has a line, and so have owners
// that are not listed any more.
func shares(nodes []gateway.NodeRow, partitions []gateway.PartitionRow, now time.Time) [][]string {
	rows := [][]string{strings.Split("NODE\tNAME\tPARTITIONS\tMOVING\tAGENTS\tOWING\tWAITING\tIN HAND\tOLDEST", "\t")}
	line := func(node, name string) {
		var sum gateway.PartitionRow
		owned, moving := 0, 0
		for _, p := range partitions {
			if p.Owner != node {
				continue
			}
			if owned++; moves(p) {
				moving++
			}
			sum.Agents, sum.Owing = sum.Agents+p.Agents, sum.Owing+p.Owing
			sum.Waiting, sum.InHand = sum.Waiting+p.Waiting, sum.InHand+p.InHand
			if !p.Oldest.IsZero() && (sum.Oldest.IsZero() || p.Oldest.Before(sum.Oldest)) {
				sum.Oldest = p.Oldest
			}
		}
		rows = append(rows, []string{
			projections.Printable(cmp.Or(node, noOwner), 64), projections.Printable(name, 64), fmt.Sprint(owned), fmt.Sprint(moving),
			fmt.Sprint(sum.Agents), fmt.Sprint(sum.Owing), fmt.Sprint(sum.Waiting), fmt.Sprint(sum.InHand), since(sum.Oldest, now),
		})
	}
	listed := make(map[string]bool)
	for _, n := range nodes {
		listed[n.Node] = true
		line(n.Node, n.Host)
	}
	for _, p := range partitions {
		if !listed[p.Owner] {
			listed[p.Owner] = true
			line(p.Owner, "")
		}
	}
	return rows
}

// ownedWithin is how long a partition may be without an owner before doctor reports
// it: a node that has died is noticed and replaced in less.
const ownedWithin = 5 * time.Second

// ownerless are the partitions that have no owner, and got none while it looked again for so
// long.
func ownerless(ctx context.Context, within time.Duration, look func(context.Context) ([]gateway.PartitionRow, error)) (free []string, err error) {
	until := time.Now().Add(within)
	err = poll(ctx, 500*time.Millisecond, func() (bool, error) {
		rows, err := look(ctx)
		free = nil
		for _, p := range rows {
			if p.Owner == "" {
				free = append(free, p.Partition.String())
			}
		}
		return len(free) == 0 || !time.Now().Before(until), err
	})
	return free, err
}

// cluster is what doctor says of nodes and partitions.
func (a *app) cluster(ctx context.Context, c *client.Client) []finding {
	nodes, err := storeRows[gateway.NodeRow](ctx, c, "nodes")
	if err != nil {
		return []finding{a.failed("nodes", err)}
	}
	found := judgeNodes(nodes)
	free, err := ownerless(ctx, ownedWithin, func(ctx context.Context) ([]gateway.PartitionRow, error) {
		return storeRows[gateway.PartitionRow](ctx, c, "partitions")
	})
	switch {
	case err != nil:
		return append(found, a.failed("partitions", err))
	case len(free) > 0:
		return append(found, finding{"partitions", "fail", fmt.Sprintf("no node owns %d of %d partitions (%s), and none took them in %v: their agents do not work; look at the nodes' logs", len(free), messages.Partitions, words(free), ownedWithin)})
	}
	return append(found, finding{"partitions", "ok", fmt.Sprintf("all %d have an owner", messages.Partitions)})
}

// storeRows reads a view of the whole store.
func storeRows[T any](ctx context.Context, c *client.Client, view string) (rows []T, err error) {
	for line, err := range c.QueryStore(ctx, messages.Query{View: view}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, raw[T](line))
	}
	return rows, nil
}
