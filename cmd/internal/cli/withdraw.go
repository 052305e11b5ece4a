package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) withdraw() *cobra.Command {
	var f changeFlags
	var all bool
	cmd := &cobra.Command{
		Use: "withdraw AGENT INPUT | withdraw AGENT --all", GroupID: groupChange, Args: cobra.RangeArgs(1, 2),
		Short: "Take back an input that no model has seen yet, or all of them",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 2) {
				return usage("name one input, as show lists it, or give --all: not both")
			}
			c := messages.Withdraw{ID: f.id, All: all, Reason: f.reason}
			did := plainly("withdrew every input that waited")
			if !all {
				c.Input = args[1]
				did = plainly("withdrew input %s", c.Input)
			}
			return a.change(cmd.Context(), args[0], c, did)
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "take back every input that waits")
	return a.connects(cmd, defaultTimeout)
}
