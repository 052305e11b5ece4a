package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) resume() *cobra.Command {
	var f changeFlags
	var maxSteps int
	var turn string
	cmd := &cobra.Command{
		Use: "resume AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Go on with a paused turn, or with a failed one at the failed step",
		RunE: func(cmd *cobra.Command, args []string) error {
			if maxSteps < 0 {
				return usage("--max-steps %d: it must be positive", maxSteps)
			}
			c := messages.Resume{ID: f.id, Turn: messages.TurnID(turn), Raised: messages.Raised{MaxSteps: maxSteps}, Reason: f.reason}
			return a.change(cmd.Context(), args[0], c, "resumed")
		},
	}
	f.flags(cmd)
	cmd.Flags().IntVar(&maxSteps, "max-steps", 0, "new limit of model calls in this turn (default: the old one)")
	cmd.Flags().StringVar(&turn, "turn", "", "turn to go on with (default: the newest)")
	return a.connects(cmd, defaultTimeout)
}
