package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) decide() *cobra.Command {
	var f changeFlags
	var turn, result string
	cmd := &cobra.Command{
		Use: "decide AGENT CALL completed|failed|retry", GroupID: groupDecide, Args: cobra.ExactArgs(3),
		Short: "Settle a tool call whose outcome is unknown",
		Long: `Settle a tool call whose outcome is unknown, because the node ended while it ran:
completed and failed tell the model --result, retry runs the tool again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			outcome := messages.Outcome(args[2])
			switch outcome {
			case messages.OutcomeCompleted, messages.OutcomeFailed:
			case messages.OutcomeRetry:
				if result != "" {
					return usage("--result: a call that is tried again makes its own")
				}
			default:
				return usage("outcome %q: write completed, failed or retry", args[2])
			}
			c := messages.Decide{ID: f.id, Call: messages.CallID(args[1]), Turn: messages.TurnID(turn), Outcome: outcome, Result: result, Reason: f.reason}
			return a.change(cmd.Context(), args[0], c, ofTurn("settled a call of"))
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&turn, "turn", "", "decide only if the call belongs to this turn (default: whichever runs)")
	cmd.Flags().StringVar(&result, "result", "", "what the call gave, or why it failed: the model reads it")
	return a.connects(cmd, defaultTimeout)
}
