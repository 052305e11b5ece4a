package cli

import (
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
)

func (a *app) bench() *cobra.Command {
	var o bench.Options
	figures := []bench.Figure{bench.Turns, bench.Inputs}
	cmd := &cobra.Command{
		Use: "bench [NAME...]", GroupID: groupCheck,
		Short: "Measure the runtime on this machine, beside plain JetStream",
		Long:  "Measure the runtime on this machine, beside plain JetStream, on nodes and folders of its own.\n" + bench.List(figures),
		Example: `  reprise bench
  reprise bench turns --sync always --agents 1,64`,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := o.Choose(figures, args)
			if err != nil {
				return usage("%v", err)
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			o.Out, o.JSON, o.Tune = a.out, a.json(), Tune
			if isTerminal(a.err) {
				o.Progress = a.err
			}
			return bench.Run(ctx, o, chosen...)
		},
	}
	o.Flags(cmd.Flags())
	return cmd
}
