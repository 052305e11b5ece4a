package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

// forget is a command below approvals.
func (a *app) forget() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use: "forget AGENT TOOL", Args: cobra.ExactArgs(2),
		Short: "Forget the remembered decision about a tool: its calls are asked about again",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := messages.Forget{ID: f.id, Tool: args[1], Reason: f.reason}
			return a.change(cmd.Context(), args[0], c, plainly("forgot the decision about %s", c.Tool))
		},
	}
	f.flags(cmd)
	return a.connects(cmd, defaultTimeout)
}
