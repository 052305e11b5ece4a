package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) compact() *cobra.Command {
	var c messages.Compact
	cmd := &cobra.Command{
		Use: "compact AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Shorten the history that the model sees",
		Long: `Shorten the history that the model sees: one message stands for its older part, either a summary
that a model writes, or a line that names how much was left out. The log keeps everything:
events, replay and history --at show it as it was.

A summary is written after this command has returned. The event history.compacted records it;
compaction.failed records that it could not be written.`,
		Example: `  reprise compact assistant/main --keep 20
  reprise compact assistant/main --how window`,
	}
	cmd.Flags().IntVar(&c.Keep, "keep", 0, "keep at least the newest `N` items (default: the agent's, else 20)")
	cmd.Flags().StringVar(&c.How, "how", "", "`METHOD` of replacing the older part: summary or window (default: the agent's, else summary)")
	return a.changes(cmd, func(f changeFlags, _ []string) (messages.Command, done, error) {
		c.ID, c.Reason = f.id, f.reason
		switch {
		case c.Keep < 0:
			return nil, nil, usage("--keep %d: it must be positive", c.Keep)
		case c.How == messages.CompactWindow:
			return c, plainly("compacted its history"), nil
		case c.How != "" && c.How != messages.CompactSummary:
			return nil, nil, usage("--how %q: write summary or window", c.How)
		}
		return c, plainly("asked for a summary of its history"), nil
	})
}
