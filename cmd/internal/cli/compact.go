package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) compact() *cobra.Command {
	var c messages.Compact
	cmd := &cobra.Command{
		Use: "compact AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Make what the model sees of the past shorter",
		Long: `Make what the model sees of the past shorter: one message stands for its older part,
a summary that a model makes or a line that says that something was left out. The log
keeps everything: events, replay and history --at show it as it was. The summary
is made after this command returns; history.compacted records it, and
compaction.failed if it could not be made.`,
	}
	cmd.Flags().IntVar(&c.Keep, "keep", 0, "how many of the newest items stay, at least (default: the agent's, else 20)")
	cmd.Flags().StringVar(&c.How, "how", "", "summary or window (default: the agent's, else summary)")
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
