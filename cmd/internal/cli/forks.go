package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) forks() *cobra.Command {
	q := messages.Query{View: "forks"}
	cmd := &cobra.Command{
		Use: "forks AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "List the forks of an agent",
		Long: `List the forks of an agent, deleted ones included: the event at which each was made, when, and
why. For a fork, "reprise show" names its parent.`,
		Example: `  reprise forks support/t1`,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runForks(cmd.Context(), args[0], q) },
	}
	asOf(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runForks(ctx context.Context, agent string, q messages.Query) error {
	rows, err := table(a, "FORK\tAT\tMADE\tSTATUS\tREASON", a.ofAgent(ctx, agent, q), func(f projections.Fork) string {
		return fmt.Sprintf("%s\t%d\t%s\t%s\t%s", f.Agent, f.At, a.moment(f.Requested, time.DateTime), f.Status, projections.Printable(f.Reason, 80))
	})
	return a.listed(rows, err, "no forks were made of "+agent, fmt.Sprintf("`%s fork %s NEW --at N` makes one", a.started, agent))
}
