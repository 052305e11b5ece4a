package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) abort() *cobra.Command {
	var f changeFlags
	var turn string
	cmd := &cobra.Command{
		Use: "abort AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Cancel the running turn, without a note",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.change(cmd.Context(), args[0], messages.Abort{ID: f.id, Turn: messages.TurnID(turn), Reason: f.reason}, "aborted")
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&turn, "turn", "", "only this turn, such as t4 (default: whichever runs)")
	return a.connects(cmd, defaultTimeout)
}
