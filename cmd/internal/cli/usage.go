package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

func (a *app) usage() *cobra.Command {
	var tenant string
	q := messages.Query{View: "usage"}
	cmd := &cobra.Command{
		Use: "usage [AGENT]", GroupID: groupLook, Args: cobra.MaximumNArgs(1),
		Short: "Show the tokens and the cost of model calls",
		Long: `Show what the model calls of an agent used and cost, by turn, by model and in all; with -o json
also call by call. Without an agent: those of a whole tenant, summed by model or by what --by
names, in whole hours. Cost is in the unit of the price table. A call whose answer was lost
counts as a call; its tokens are not known.

Models are named as in the configuration; with -o json, "answered" of a call of an agent is the
name that the provider gave. The usage of a deleted agent is removed with it, also by retain in
the configuration: sums of the past become smaller. If you must account for usage, save it
before.`,
		Example: `  reprise usage support/ticket-42
  reprise usage --by day --since 7d
  reprise usage --by agent --kind support -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ofAll(cmd, args, []string{"tenant", "kind", "model", "by", "since", "until", "limit"}, []string{"at"}); err != nil {
				return err
			}
			if len(args) == 1 {
				return a.runUsage(cmd.Context(), args[0], q)
			}
			if q.By != "" && !slices.Contains(index.By, q.By) {
				return usage("--by %q: write one of %s", q.By, words(index.By))
			}
			return a.runUsageOfAll(cmd.Context(), tenant, q)
		},
	}
	asOf(cmd, &q)
	tenantFlag(cmd, &tenant)
	kindFlag(cmd, &q)
	f := cmd.Flags()
	f.StringVar(&q.Model, "model", "", "only calls of this `MODEL`, named as in the configuration: provider/model")
	f.StringVar(&q.By, "by", "", "sum by this `FIELD`: agent, kind, model (default), day or hour")
	timeFlags(cmd, &q, "only calls that ended")
	limitFlag(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runUsage(ctx context.Context, agent string, q messages.Query) error {
	_, err := table(a, "OF\tCALLS\tLOST\tINPUT\tCACHED\tOUTPUT\tCOST", a.ofAgent(ctx, agent, q), func(l projections.UsageLine) string {
		of := l.Type
		switch l.Type {
		case "call":
			return ""
		case "turn":
			if of = "turn " + string(l.Turn); l.Turn == "" {
				of = "no turn (summaries)"
			}
		case "model":
			of = l.Model
		}
		return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%s", projections.Printable(of, 80), l.Calls, l.Lost, l.Usage.Input, l.Usage.Cached, l.Usage.Output, l.Cost)
	})
	return err
}

// runUsageOfAll prints what a tenant's agents used.
func (a *app) runUsageOfAll(ctx context.Context, tenant string, q messages.Query) error {
	_, err := table(a, "OF\tCALLS\tFAILED\tLOST\tINPUT\tCACHED\tOUTPUT\tREASONING\tCOST", a.ofTenant(ctx, tenant, q), func(l projections.UsageSum) string {
		of := l.Type
		switch l.Type {
		case "agent":
			of = l.Agent.String()
		case "kind":
			of = l.Kind
		case "model":
			of = l.Model
		case "day":
			of = l.From.Format(time.DateOnly)
		case "hour":
			of = l.From.Format("2006-01-02 15h")
		}
		return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s", projections.Printable(of, 80), l.Calls, l.Failed, l.Lost,
			l.Usage.Input, l.Usage.Cached, l.Usage.Output, l.Usage.Reasoning, l.Cost)
	})
	return err
}
