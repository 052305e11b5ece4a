package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) index() *cobra.Command {
	return a.connects(&cobra.Command{
		Use: "index", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "Show how far the index has read the log",
		Long: `Show how far the index of all agents (approvals, effects, usage and find of a whole tenant) has
read the log, partition by partition, each as its owner has it. A node keeps the index in a file
that is a cache of the log. To rebuild it, stop the node, delete the file and start the node. It
covers the whole store, so the command is for operators, not for readers of a tenant.`,
		Example: `  reprise index`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runIndex(cmd.Context()) },
	}, defaultTimeout)
}

func (a *app) runIndex(ctx context.Context) error {
	files := make(map[string]string) // of nodes
	var behind uint64
	unreadable := 0
	_, err := table(a, "PARTITION\tPOSITION\tEND\tBEHIND\tUNREADABLE\tNEWEST\tNODE", a.ofStore(ctx, "index"), func(p gateway.IndexPosition) string {
		files[p.Node] = p.File
		behind, unreadable = behind+p.Behind, unreadable+p.Unreadable
		return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s\t%s", p.Partition, p.Position, p.End, p.Behind, p.Unreadable, a.age(p.Stored), projections.Printable(p.Node, 64))
	})
	if err != nil || a.json() {
		return err
	}
	for _, node := range slices.Sorted(maps.Keys(files)) {
		where := "file " + projections.Printable(files[node], 400)
		if files[node] == "" {
			where = "in memory"
		}
		a.note("node %s: %s", projections.Printable(node, 64), where)
	}
	a.note("%d sequences behind, %d frames unreadable", behind, unreadable)
	return nil
}
