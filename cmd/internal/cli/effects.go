package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/replay"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) effects() *cobra.Command {
	var tenant string
	q := messages.Query{View: "effects"}
	cmd := &cobra.Command{
		Use: "effects [AGENT]", GroupID: groupLook, Args: cobra.MaximumNArgs(1),
		Short: "List tool calls and their outcomes",
		Long: `List tool calls and their outcomes, of one agent or of a whole tenant, oldest first. The text
form cuts long arguments and outputs and marks that; -o json has whole arguments. On a terminal,
idempotency keys are shown only with --wide.

A call that repeats an earlier one of its agent, in any turn, is shown with the event of the
earlier call: it has the same tool and the same arguments, and the earlier one may have had its
effect. Calls of read-only tools are not marked. A dry call is one of a fork that did not call
the tool: its output is the one recorded in the parent's log. An imported call was made before
its agent was imported, where the agent was then.

Calls from before a fork began are listed for its parent. They are also listed for the fork,
marked with "before the fork", if you name it, and in the list of all agents once the fork has
copied them (delete --detach).

--where looks into the arguments: order=7 matches a number and a text. Dots separate the names
and list positions of a path (customer.name=Ann, items.0.sku=x). If it is given several times,
all must match.`,
		Example: `  reprise effects --tool refund --where order=7
  reprise effects support/ticket-42 --turn t7
  reprise effects support/ticket-42 --at 120
  reprise effects --repeated --tool refund
  reprise effects --outcome unknown --since 24h -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ofAll(cmd, args, []string{"tenant", "kind"}, []string{"at", "turn"}); err != nil {
				return err
			}
			if outcome := projections.Outcome(q.Outcome); q.Outcome != "" && !slices.Contains(projections.Outcomes, outcome) {
				return usage("--outcome %q: write one of %s", q.Outcome, words(projections.Outcomes))
			}
			return a.runEffects(cmd.Context(), tenant, args, q)
		},
	}
	tenantFlag(cmd, &tenant)
	kindFlag(cmd, &q)
	callFlags(cmd, &q)
	cmd.Flags().StringVar(&q.Outcome, "outcome", "", "only calls with this `OUTCOME`: requested, waiting, running, unknown, completed, failed, denied or skipped")
	cmd.Flags().BoolVar(&q.Repeated, "repeated", false, "only calls that repeat an earlier one of their agent")
	limitFlag(cmd, &q)
	turnFlag(cmd, &q)
	asOf(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runEffects(ctx context.Context, tenant string, args []string, q messages.Query) error {
	head, keys := "AGENT\tEVENT\tAT\tTURN\tTOOL\tARGUMENTS\tOUTCOME\tOUTPUT", a.width() == 0
	if keys { // they are not cut, and leave too little of a terminal for the rest
		head += "\tKEY"
	}
	rows, err := table(a, head, a.ofAgentOrTenant(ctx, tenant, args, q), func(e projections.Effect) string {
		row := fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s", e.Agent, e.N, a.age(e.At), projections.Printable(string(e.Turn), 64),
			projections.Printable(e.Tool, 64), argumentsText(e), outcomeText(e), outputText(e))
		if keys {
			row += "\t" + projections.Printable(e.Key, 200)
		}
		return row
	})
	if err == nil && rows == 0 && q.Turn != "" { // a turn that is not there is an error, as elsewhere
		err = a.ofAgent(ctx, args[0], messages.Query{View: "turn", Turn: q.Turn, At: q.At})(func(json.RawMessage) error { return nil })
	}
	return a.listed(rows, err, "no such calls", "")
}

// argumentsText is the arguments of a call, behind the earlier call that it repeats.
func argumentsText(e projections.Effect) string {
	arguments := projections.Printable(e.Arguments, 80)
	switch {
	case e.Repeats != 0:
		return fmt.Sprintf("(as event %d before) %s", e.Repeats, arguments)
	case e.Flagged != "":
		return "(as " + projections.Printable(string(e.Flagged), 64) + " before) " + arguments
	}
	return arguments
}

// outcomeText is what became of a call, and who decided about it.
func outcomeText(e projections.Effect) string {
	outcome := string(e.Outcome)
	if e.Kind != "" {
		outcome += " (" + projections.Printable(string(e.Kind), 40) + ")"
	}
	if e.By != "" {
		outcome += " by " + projections.Printable(string(e.By), 40)
	}
	if e.Dry {
		outcome += ", dry"
	}
	switch {
	case e.Person != nil && e.Approval == projections.Granted && e.By != messages.ByDecision:
		outcome += ", approved by " + replay.Person(e.Person)
	case e.Person != nil:
		outcome += ", decided by " + replay.Person(e.Person)
	case e.ApprovedBy == messages.ByRemembered:
		outcome += ", " + projections.Printable(e.Approval, 40) + " by an earlier decision"
	}
	if e.Attempt > 1 {
		outcome += fmt.Sprintf(", %d attempts", e.Attempt)
	}
	if e.Imported {
		outcome += ", imported"
	}
	if e.BeforeFork {
		outcome += ", before the fork"
	}
	return outcome
}

// outputText is the beginning of what a call returned, or why it waits.
func outputText(e projections.Effect) string {
	text := e.Output
	if text == "" {
		text = e.Reason
	}
	if e.OutputBytes > len(e.Output) {
		return projections.Printable(text, 60) + fmt.Sprintf(" [%d bytes]", e.OutputBytes)
	}
	return projections.Printable(text, 60)
}

func (a *app) turns() *cobra.Command {
	var failed bool
	q := messages.Query{View: "turns", Whole: true}
	cmd := &cobra.Command{
		Use: "turns AGENT", GroupID: groupLook, Args: cobra.ExactArgs(1),
		Short: "List the turns of an agent and how they ended",
		Long: `List the turns of an agent, what was asked and how they ended. Questions and answers are
shortened, with -o json to 400 bytes; "reprise turn" shows one turn whole, step by step.`,
		Example: `  reprise turns assistant/main --tail 5
  reprise turns assistant/main --failed`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ofAll(cmd, nil, nil, nil); err != nil {
				return err
			}
			if failed {
				q.Last = string(projections.Failed)
			}
			return a.runTurns(cmd.Context(), args[0], q)
		},
	}
	asOf(cmd, &q)
	tailFlag(cmd, &q, "turns")
	limitFlag(cmd, &q)
	cmd.Flags().BoolVar(&failed, "failed", false, "only turns that have failed")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runTurns(ctx context.Context, agent string, q messages.Query) error {
	rows, err := table(a, "TURN\tPHASE\tSTARTED\tENDED\tSTEPS\tTOKENS\tCOST\tREASON\tQUESTION\tANSWER", a.ofAgent(ctx, agent, q), func(t projections.TurnLine) string {
		reason := cmp.Or(string(t.Kind), t.Reason, t.Finish)
		if t.Message != "" {
			reason += ": " + t.Message
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s", projections.Printable(string(t.ID), 64), t.Phase, a.age(t.StartedAt), a.age(t.EndedAt),
			t.Steps, t.Usage.Tokens(), t.Cost, projections.Printable(reason, 100), projections.Printable(t.Question, 60), projections.Printable(t.Answer, 60))
	})
	return a.listed(rows, err, "no turns", "")
}
