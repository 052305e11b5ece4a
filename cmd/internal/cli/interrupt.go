package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) interrupt() *cobra.Command {
	return a.stopTurn("interrupt AGENT", "Cancel the running turn, with a note that the model sees", "interrupted",
		func(id, reason string, turn messages.TurnID) messages.Command {
			return messages.Interrupt{ID: id, Turn: turn, Reason: reason}
		})
}

func (a *app) abort() *cobra.Command {
	return a.stopTurn("abort AGENT", "Cancel the running turn, without a note", "aborted",
		func(id, reason string, turn messages.TurnID) messages.Command {
			return messages.Abort{ID: id, Turn: turn, Reason: reason}
		})
}

// stopTurn is a command that cancels the running turn; did says that it has.
func (a *app) stopTurn(use, short, did string, command func(id, reason string, turn messages.TurnID) messages.Command) *cobra.Command {
	var f changeFlags
	var turn string
	cmd := &cobra.Command{
		Use: use, GroupID: groupChange, Args: cobra.ExactArgs(1), Short: short,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.change(cmd.Context(), args[0], command(f.id, f.reason, messages.TurnID(turn)), ofTurn(did))
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&turn, "turn", "", "only this turn, such as t4 (default: whichever runs)")
	return a.connects(cmd, defaultTimeout)
}
