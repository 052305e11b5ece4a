package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) interrupt() *cobra.Command {
	return a.stopTurn("interrupt", "Cancel the running turn, with a note to the model", "interrupted",
		func(f changeFlags, turn messages.TurnID) messages.Command {
			return messages.Interrupt{ID: f.id, Turn: turn, Reason: f.reason}
		})
}

func (a *app) abort() *cobra.Command {
	return a.stopTurn("abort", "Cancel the running turn, without a note to the model", "aborted",
		func(f changeFlags, turn messages.TurnID) messages.Command {
			return messages.Abort{ID: f.id, Turn: turn, Reason: f.reason}
		})
}

// stopTurn is a command that cancels the running turn; did reports whether it has.
func (a *app) stopTurn(use, short, did string, command func(changeFlags, messages.TurnID) messages.Command) *cobra.Command {
	var turn string
	cmd := &cobra.Command{
		Use: use + " AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1), Short: short,
		Long:    short + ". Its children are stopped, too. Inputs that wait are processed next.",
		Example: "  reprise " + use + " assistant/main --turn t4 --reason \"wrong customer\"",
	}
	cmd.Flags().StringVar(&turn, "turn", "", "only if this `TURN` runs, such as t4 (default: the running turn)")
	return a.changes(cmd, func(f changeFlags, _ []string) (messages.Command, done, error) {
		return command(f, messages.TurnID(turn)), ofTurn(did), nil
	})
}
