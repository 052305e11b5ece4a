package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/cmd/bench"
)

func (a *app) bench() *cobra.Command {
	var o bench.Options
	var versus bench.Versus
	var about strings.Builder
	for _, name := range bench.Names() {
		about.WriteString("\n  " + name + strings.Repeat(" ", max(1, 12-len(name))) + bench.About(name))
	}
	cmd := &cobra.Command{
		Use: "bench [NAME...]", GroupID: groupCheck,
		Short: "Measure this machine: the runtime beside plain JetStream",
		Long:  "Measure this machine: the runtime beside plain JetStream, on nodes and folders of its own.\n" + about.String(),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.Contains(bench.Names(), name) && !bench.Child(name) {
					return usage("there is no benchmark %q: the names are %s", name, strings.Join(bench.Names(), ", "))
				}
			}
			for _, part := range o.Only {
				if !slices.Contains(bench.Parts(), part) {
					return usage("the benchmark cluster has no part %q: the parts are %s", part, strings.Join(bench.Parts(), ", "))
				}
			}
			if versus.Old != "" && (len(args) == 0 || versus.Pairs < 1) {
				return usage("--against wants the names of benchmarks, and --pairs of at least 1")
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			o.Names, o.In, o.Out, o.JSON, o.Tune = args, a.in, a.out, a.json(), tune
			if isTerminal(a.err) {
				o.Progress = a.err
			}
			if versus.Old != "" {
				versus.Names, versus.Flags = args, passedOn(cmd.Flags())
				return bench.Against(ctx, o, versus)
			}
			return bench.Run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "where temporary folders are made: its disk is measured (default: the system's)")
	f.StringSliceVar(&o.Sync, "sync", nil, "modes of the embedded server (default: always,relaxed)")
	f.IntSliceVar(&o.Agents, "agents", nil, "how many agents are at work at once (default: 1,64,512), or in mid-turn when a node of cluster is killed (default: 500,10000)")
	f.DurationVar(&o.Window, "window", 0, "how long one window of turns lasts (default: 0.9s)")
	f.IntSliceVar(&o.Nodes, "nodes", nil, "cluster: how many nodes (default: 1,2,3)")
	f.IntSliceVar(&o.Replicas, "replicas", nil, "cluster: 1, on one NATS server, or 3, on three (default: 1,3)")
	f.StringSliceVar(&o.Only, "only", nil, "cluster: parts of it: "+strings.Join(bench.Parts(), ", ")+" (default: all)")
	f.StringVar(&versus.Old, "against", "", "another build of this program, such as ./old/reprise: measure with it and with this one in turn, and print the ratios new to old")
	f.IntVar(&versus.Pairs, "pairs", 5, "with --against: how often each of them measures each benchmark")
	return cmd
}

// passedOn returns the flags given that programs compared by --against get, too.
func passedOn(flags *pflag.FlagSet) (args []string) {
	flags.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		if f.Name != "against" && f.Name != "pairs" && f.Name != "output" {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}
