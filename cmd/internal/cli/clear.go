package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) clear() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "clear AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Reset an agent: its turn, queue, history and state",
		Long: `Reset an agent. The running turn is aborted, waiting inputs are dropped, and history, state and
remembered decisions become what they were when the agent was created. The log keeps the earlier
events.`,
		Example: `  reprise clear assistant/main --reason "start again"`,
	}, func(f changeFlags, _ []string) (messages.Command, done, error) {
		return messages.Clear{ID: f.id, Reason: f.reason}, andAborted("cleared"), nil
	})
}
