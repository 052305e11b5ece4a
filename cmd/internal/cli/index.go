package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) index() *cobra.Command {
	return a.connects(&cobra.Command{
		Use: "index", GroupID: groupCheck, Args: cobra.NoArgs,
		Short: "Show how far a node's index has read the log",
		Long: `Show how far the index of all agents (approvals, effects and usage of a whole
tenant) has read the log, shard by shard, on the node that answers. It is kept
in a file that is a cache of the log: to have it built again, stop the node,
delete the file and start the node. It covers the whole store, so this is for
operators, not for readers of a tenant.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runIndex(cmd.Context()) },
	}, defaultTimeout)
}

func (a *app) runIndex(ctx context.Context) error {
	var all gateway.IndexPosition
	_, err := table(a, "SHARD\tPOSITION\tEND\tBEHIND\tUNREADABLE\tNEWEST", a.ofStore(ctx, "index"), func(p gateway.IndexPosition) string {
		all.Node, all.File = p.Node, p.File
		all.Behind, all.Unreadable = all.Behind+p.Behind, all.Unreadable+p.Unreadable
		return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%s", p.Shard, p.Position, p.End, p.Behind, p.Unreadable, a.age(p.Stored))
	})
	if err == nil && !a.json() {
		where := "file " + projections.Printable(all.File, 400)
		if all.File == "" {
			where = "in memory"
		}
		a.note("node %s, %s: %d frames behind, %d unreadable", projections.Printable(all.Node, 64), where, all.Behind, all.Unreadable)
	}
	return err
}
