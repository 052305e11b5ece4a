package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) useTools() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "use-tools FORK", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Let a fork run its tools",
		Long: `Let a fork run its tools. Until then its calls have the results that its parent has on
record, or wait for a person. A call that waits for one is run by decide --outcome retry.`,
	}, func(f changeFlags, _ []string) (messages.Command, done, error) {
		return messages.UseTools{ID: f.id, Reason: f.reason}, plainly("uses its tools"), nil
	})
}
