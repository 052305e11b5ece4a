package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// callText is a call as a program would write it.
func callText(tool, arguments string) string { return tool + "(" + arguments + ")" }

func (a *app) approvals() *cobra.Command {
	var tenant string
	var remembered bool
	q := messages.Query{View: "approvals"}
	cmd := &cobra.Command{
		Use: "approvals [AGENT]", GroupID: groupDecide, Args: cobra.MaximumNArgs(1),
		Short: "List the tool calls that wait for approval",
		Long: `List the tool calls that wait for approval, of one agent or of a whole tenant. The text form
cuts long arguments and marks that; -o json has whole arguments, with their hash. With
--remembered it lists the decisions that hold for later calls of an agent.`,
		Example: `  reprise approvals
  reprise approvals support/t1 -o json
  reprise approvals support/t1 --remembered`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case remembered && len(args) == 0:
				return usage("--remembered: name the agent")
			case len(args) == 1 && cmd.Flags().Changed("tenant"):
				return usage("--tenant: the address of the agent names its tenant, as in %s/%s", tenant, args[0])
			}
			if err := ofAll(cmd, args, []string{"kind", "tool", "where", "since", "until", "limit"}, []string{"at"}); err != nil {
				return err
			}
			if remembered {
				return a.runRemembered(cmd.Context(), args[0], q.At)
			}
			none := "no call waits for approval"
			if q.Kind != "" || q.Tool != "" || len(q.Where) > 0 || !q.Since.IsZero() || !q.Until.IsZero() {
				none = "no such call waits for approval; others may"
			}
			if err := a.runApprovals(a.ofAgentOrTenant(cmd.Context(), tenant, args, q), none); err != nil || len(args) == 0 || q.At != 0 {
				return err
			}
			return a.noteMore(cmd.Context(), args[0])
		},
	}
	tenantFlag(cmd, &tenant)
	kindFlag(cmd, &q)
	callFlags(cmd, &q)
	limitFlag(cmd, &q)
	asOf(cmd, &q)
	cmd.Flags().BoolVar(&remembered, "remembered", false, "list the remembered decisions of an agent instead")
	cmd.AddCommand(a.forget())
	return a.connects(cmd, defaultTimeout)
}

// runApprovals prints calls that wait, or none if there are none.
func (a *app) runApprovals(calls view, none string) error {
	rows, err := table(a, "AGENT\tTURN\tCALL\tTOOL\tARGUMENTS\tSINCE\tEXPIRES", calls, func(p messages.Approval) string {
		arguments, expires := projections.Printable(p.Arguments, 160), "never"
		if p.Flagged != "" {
			arguments += " (as " + projections.Printable(string(p.Flagged), 64) + " before)"
		}
		if !p.ExpiresAt.IsZero() {
			expires = a.age(p.ExpiresAt)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", p.Agent, projections.Printable(string(p.Turn), 64),
			projections.Printable(string(p.Call), 0), projections.Printable(p.Tool, 64), arguments, a.age(p.At), expires)
	})
	return a.listed(rows, err, none,
		fmt.Sprintf("`%s approve AGENT CALL --turn TURN` lets one run, `%s deny AGENT CALL --turn TURN` does not", a.started, a.started))
}

// noteMore notes that more waits below an agent than it lists.
func (a *app) noteMore(ctx context.Context, agent string) error {
	return a.ofAgent(ctx, agent, messages.Query{View: "show"})(func(line json.RawMessage) error {
		if raw[projections.AgentStatus](line).WaitingMore {
			a.note("%s", a.moreWaits())
		}
		return nil
	})
}

func (a *app) moreWaits() string {
	return fmt.Sprintf("more calls wait below: an agent lists %d of each child; `%s approvals` has all, each by the agent whose it is", messages.MaxWaits, a.started)
}

// runRemembered prints the decisions that hold for later calls of an agent.
func (a *app) runRemembered(ctx context.Context, agent string, at messages.EventNumber) error {
	decisions := a.ofAgent(ctx, agent, messages.Query{View: "approvals", Remembered: true, At: at})
	rows, err := table(a, "TOOL\tDECISION\tSINCE\tPERSON\tREASON", decisions, func(r messages.Remembered) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", projections.Printable(r.Tool, 64), projections.Printable(r.Decision, 64),
			a.time(r.At), replay.Person(r.Person), projections.Printable(r.Reason, 160))
	})
	return a.listed(rows, err, "no decision is remembered for "+agent,
		fmt.Sprintf("`%s approvals forget %s TOOL` makes calls of the tool wait for approval again", a.started, agent))
}

// forget is a command below approvals.
func (a *app) forget() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "forget AGENT TOOL", Args: cobra.ExactArgs(2),
		Short:   "Remove a remembered decision about a tool",
		Long:    `Remove a remembered decision about a tool. Later calls of the tool wait for approval again.`,
		Example: `  reprise approvals forget support/t1 refund`,
	}, func(f changeFlags, args []string) (messages.Command, done, error) {
		return messages.Forget{ID: f.id, Tool: args[1], Reason: f.reason}, plainly("forgot the decision about %s", args[1]), nil
	})
}
