package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// tenantFlag gives cmd the flag --tenant.
func tenantFlag(cmd *cobra.Command, tenant *string) {
	cmd.Flags().StringVar(tenant, "tenant", messages.DefaultTenant, "tenant to look at")
}

func (a *app) ls() *cobra.Command {
	var tenant string
	q := messages.Query{View: "agents"}
	cmd := &cobra.Command{
		Use: "ls", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the agents of a tenant and what they are doing",
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.runLs(cmd.Context(), tenant, q) },
	}
	tenantFlag(cmd, &tenant)
	cmd.Flags().StringVar(&q.Kind, "kind", "", "only agents of this kind")
	cmd.Flags().StringVar(&q.Phase, "phase", "", "only agents that are idle, running or paused")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runLs(ctx context.Context, tenant string, q messages.Query) error {
	switch q.Phase {
	case "", "idle", "running", "paused":
	default:
		return usage("--phase %q: write idle, running or paused", q.Phase)
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	rows := 0
	err := a.tenantLines(ctx, tenant, q, func(line json.RawMessage) error {
		if a.json() {
			a.printf("%s\n", line)
			return nil
		}
		if rows++; rows == 1 {
			_, _ = fmt.Fprintln(table, "AGENT\tPHASE\tTURN\tEVENTS\tUPDATED")
		}
		row := raw[projections.Agent](line)
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", row.Agent, row.Phase, projections.Printable(string(row.Turn), 64), row.Events, row.Updated.UTC().Format("2006-01-02 15:04:05"))
		return nil
	})
	if flushed := table.Flush(); err == nil {
		err = flushed
	}
	if err == nil && rows == 0 && !a.json() {
		a.note("no agents; one is made by the first input to it")
	}
	return err
}
