package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// tenantFlag adds to cmd the flag --tenant.
func tenantFlag(cmd *cobra.Command, tenant *string) {
	cmd.Flags().StringVar(tenant, "tenant", messages.DefaultTenant, "`TENANT` to read")
}

func (a *app) ls() *cobra.Command {
	var tenant string
	q := messages.Query{View: "agents"}
	cmd := &cobra.Command{
		Use: "ls", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the agents of a tenant and what they are doing",
		Long: `List the agents of a tenant and what they are doing. If a partition has no owner, or its index
is behind the log, a line names it and the exit code is 1.`,
		Example: `  reprise ls --kind support --phase paused --since 24h
  reprise ls --last failed`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ofAll(cmd, args, nil, nil); err != nil {
				return err
			}
			return a.runLs(cmd.Context(), tenant, q)
		},
	}
	tenantFlag(cmd, &tenant)
	kindFlag(cmd, &q)
	cmd.Flags().Var(&when{at: &q.Since}, "since", "only agents with an event since then: 90m, 24h, 7d, a date or a time")
	limitFlag(cmd, &q)
	cmd.Flags().StringVar((*string)(&q.Phase), "phase", "", "only agents in this `PHASE`: idle, running, paused or deleted")
	cmd.Flags().StringVar(&q.Last, "last", "", "only agents whose last turn ended in this `PHASE`: failed")
	cmd.Flags().BoolVar(&q.Deleted, "deleted", false, "list deleted agents, too")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runLs(ctx context.Context, tenant string, q messages.Query) error {
	switch q.Phase {
	case "", messages.PhaseIdle, messages.PhaseRunning, messages.PhasePaused, messages.PhaseDeleted:
	default:
		return usage("--phase %q: write idle, running, paused or deleted", q.Phase)
	}
	if q.Last != "" && q.Last != string(projections.Failed) {
		return usage("--last %q: write %s", q.Last, projections.Failed)
	}
	rows, err := table(a, "AGENT\tPHASE\tTURN\tLAST\tWAITING\tEVENTS\tUPDATED", a.ofTenant(ctx, tenant, q), func(row projections.Agent) string {
		last, waiting := "", ""
		if row.LastFailed != "" {
			last = fmt.Sprintf("failed (%s)", row.LastFailed)
		}
		if row.Waiting > 0 {
			waiting = strconv.Itoa(row.Waiting)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%d\t%s", row.Agent, row.Phase, projections.Printable(string(row.Turn), 64),
			projections.Printable(last, 64), waiting, row.Events, a.age(row.Updated))
	})
	of := ""
	if tenant != messages.DefaultTenant {
		of = tenant + "/"
	}
	none := fmt.Sprintf("no agents in the tenant %s; the first input to one makes it: `%s ask %sKIND/KEY TEXT`, where KIND is one that `%s nodes` lists", tenant, a.started, of, a.started)
	if q.Kind != "" || q.Phase != "" || q.Last != "" || !q.Since.IsZero() {
		none = fmt.Sprintf("no such agents: `%s ls` lists all of the default tenant, --tenant others", a.started)
	}
	return a.listed(rows, err, none, "")
}
