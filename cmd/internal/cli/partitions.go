package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) partitions() *cobra.Command {
	cmd := &cobra.Command{
		Use: "partitions", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "List the partitions: who owns them, and what waits in them",
		Long: `List the partitions: who owns them under which epoch, how many agents they have,
how many of those owe work, and how many inputs and commands are stored and not
settled, with the age of the oldest. It is asked for on the subject <root>.q, an
administrator's.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPartitions(cmd.Context()) },
	}
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runPartitions(ctx context.Context) error {
	_, err := a.table("PARTITION\tOWNER\tEPOCH\tAGENTS\tOWING\tWAITING\tIN HAND\tOLDEST", func(each func(json.RawMessage) error) error {
		return a.storeLines(ctx, messages.Query{View: "partitions"}, each)
	}, func(line json.RawMessage) string {
		p := raw[gateway.PartitionRow](line)
		owner, epoch := "nobody", ""
		if p.Owner != "" {
			owner, epoch = projections.Printable(p.Owner, 64), fmt.Sprint(p.Epoch)
		}
		if p.MeantFor != "" && p.MeantFor != p.Owner {
			owner += " -> " + projections.Printable(p.MeantFor, 64)
		}
		return fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%d\t%d\t%s", p.Partition, owner, epoch, p.Agents, p.Owing, p.Waiting, p.InHand, since(p.Oldest, time.Now()))
	})
	return err
}

// ownedWithin is how long a partition may be without an owner before doctor tells
// of it: a node that has died is noticed and replaced in less.
const ownedWithin = 5 * time.Second

// ownerless are the partitions that nobody owns, and that nobody has come to own
// while it looked again for so long.
func ownerless(ctx context.Context, within time.Duration, look func(context.Context) ([]gateway.PartitionRow, error)) (free []string, err error) {
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(within); ; {
		rows, err := look(ctx)
		if err != nil {
			return nil, err
		}
		free = nil
		for _, p := range rows {
			if p.Owner == "" {
				free = append(free, p.Partition.String())
			}
		}
		if len(free) == 0 || !time.Now().Before(until) {
			return free, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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
		return append(found, finding{"partitions", "fail", fmt.Sprintf("nobody owns %d of %d partitions (%s), and nobody took them in %v: their agents do not work; look at the nodes' logs", len(free), messages.Partitions, words(free), ownedWithin)})
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
