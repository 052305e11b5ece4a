package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) useTools() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "use-tools FORK", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Let a fork, or an agent imported with --dry, run its tools",
		Long: `Let a fork, or an agent imported with --dry, run its tools. Until then, calls of a fork get the
results that its parent has on record, and all other calls wait for a person. "reprise decide
AGENT CALL retry" then runs a call that waits.`,
		Example: `  reprise use-tools support/what-if --reason "the sandbox is ready"`,
	}, func(f changeFlags, _ []string) (messages.Command, done, error) {
		return messages.UseTools{ID: f.id, Reason: f.reason}, plainly("uses its tools"), nil
	})
}
