package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) usage() *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use: "usage AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "Show what an agent's model calls used and cost",
		Long: `Show what an agent's model calls used and cost, by turn, by model and in all; with
-o json also call by call. Cost is in the unit of the price table. A call whose
answer was lost counts as a call; what it used nobody knows.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runUsage(cmd.Context(), args[0], messages.EventNumber(at))
		},
	}
	asOf(cmd, &at)
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runUsage(ctx context.Context, agent string, at messages.EventNumber) error {
	_, err := a.table("OF\tCALLS\tLOST\tINPUT\tCACHED\tOUTPUT\tCOST", func(each func(json.RawMessage) error) error {
		return a.agentLines(ctx, agent, messages.Query{View: "usage", At: at}, func(line json.RawMessage) error {
			if !a.json() && raw[projections.UsageLine](line).Type == "call" {
				return nil
			}
			return each(line)
		})
	}, func(line json.RawMessage) string {
		l := raw[projections.UsageLine](line)
		of := l.Type
		switch l.Type {
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
