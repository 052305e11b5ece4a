package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) interrupt() *cobra.Command {
	var f changeFlags
	var turn string
	cmd := &cobra.Command{
		Use: "interrupt AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Cancel the running turn, with a note that the model sees",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.change(cmd.Context(), args[0], messages.Interrupt{ID: f.id, Turn: messages.TurnID(turn), Reason: f.reason}, "interrupted")
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&turn, "turn", "", "only this turn, such as t4 (default: whichever runs)")
	return a.connects(cmd, defaultTimeout)
}
