package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

// forget is a command below approvals.
func (a *app) forget() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "forget AGENT TOOL", Args: cobra.ExactArgs(2),
		Short: "Forget the remembered decision about a tool: its calls are asked about again",
	}, func(f changeFlags, args []string) (messages.Command, done, error) {
		return messages.Forget{ID: f.id, Tool: args[1], Reason: f.reason}, plainly("forgot the decision about %s", args[1]), nil
	})
}
