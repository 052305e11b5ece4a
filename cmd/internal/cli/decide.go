package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) decide() *cobra.Command {
	var c messages.Decide
	cmd := &cobra.Command{
		Use: "decide AGENT CALL completed|failed|retry", GroupID: groupDecide, Args: cobra.ExactArgs(3),
		Short: "Decide a tool call whose outcome is unknown",
		Long: `Decide a tool call whose outcome is unknown, because the node ended while the call ran, or
because the tools of the agent are dry: completed and failed give --result to the model, retry
runs the tool again. "reprise effects --outcome unknown" lists such calls.`,
		Example: `  reprise decide support/t1 call_10890b43423fd3494ace completed --result "paid back"
  reprise decide support/t1 call_10890b43423fd3494ace retry`,
	}
	cmd.Flags().StringVar((*string)(&c.Turn), "turn", "", "decide only if the call belongs to this `TURN` (default: the running turn)")
	cmd.Flags().StringVar(&c.Result, "result", "", "result of the call, or why it failed: the `TEXT` that the model reads")
	return a.changes(cmd, func(f changeFlags, args []string) (messages.Command, done, error) {
		c.ID, c.Reason, c.Call, c.Outcome = f.id, f.reason, messages.CallID(args[1]), messages.Outcome(args[2])
		switch c.Outcome {
		case messages.OutcomeCompleted, messages.OutcomeFailed:
		case messages.OutcomeRetry:
			if c.Result != "" {
				return nil, nil, usage("--result: a call that is tried again makes its own")
			}
		default:
			return nil, nil, usage("outcome %q: write completed, failed or retry", args[2])
		}
		return c, settled, nil
	})
}

// settled returns what decide has done. It names the turn that continues.
func settled(turn messages.TurnID) string {
	if turn == "" {
		return "settled a call"
	}
	return ofTurn("settled a call of")(turn)
}
