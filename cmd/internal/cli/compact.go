package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) compact() *cobra.Command {
	var f changeFlags
	c := messages.Compact{}
	cmd := &cobra.Command{
		Use: "compact AGENT", GroupID: groupChange, Args: cobra.ExactArgs(1),
		Short: "Make what the model sees of the past shorter",
		Long: `Make what the model sees of the past shorter: one message stands for its older part,
a summary that a model makes or a line that says that something was left out. The log
keeps everything: events, replay and history --at show it as it was. The summary
is made after this command returns; history.compacted tells of it, and
compaction.failed if it could not be made.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("keep") && c.Keep <= 0:
				return usage("--keep %d: it must be positive", c.Keep)
			case c.How != "" && c.How != messages.CompactSummary && c.How != messages.CompactWindow:
				return usage("--how %q: write summary or window", c.How)
			}
			c.ID, c.Reason = f.id, f.reason
			did := "asked for a summary of its history"
			if c.How == messages.CompactWindow {
				did = "compacted its history"
			}
			return a.change(cmd.Context(), args[0], c, plainly("%s", did))
		},
	}
	f.flags(cmd)
	cmd.Flags().IntVar(&c.Keep, "keep", 0, "how many of the newest items stay, at least (default: the agent's, else 20)")
	cmd.Flags().StringVar(&c.How, "how", "", "summary or window (default: the agent's, else summary)")
	return a.connects(cmd, defaultTimeout)
}
