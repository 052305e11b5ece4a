package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) clear() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "clear AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Make an agent forget: its turn, its queue, its history and its state",
		Long: `Make an agent forget. The running turn is aborted, inputs that wait are dropped,
and history, state and remembered decisions are what they were when the agent was
created. The log keeps what happened.`,
	}, func(f changeFlags, _ []string) (messages.Command, done, error) {
		return messages.Clear{ID: f.id, Reason: f.reason}, andAborted("cleared"), nil
	})
}
