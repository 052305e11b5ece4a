// Command bench measures nodes beside what they stand on, for those who work on Reprise;
// what it measures in one process with an embedded server is described in package
// cmd/internal/bench.
//
// # A bare loop, and a node as users run it
//
// The figures http and serve compare turns with a loop that calls the same model
// server and appends each message to a file, with an fsync before the next step.
//
//   - The loop and the model server are child processes, with Go's defaults and the
//     user's environment: what this process sets up for its node, such as GOMAXPROCS,
//     changes neither. CPU of the loop is that of its process.
//   - http runs the node and its client in this process; its CPU is that of both.
//   - serve runs reprise serve with a reprise.yaml and an embedded server as a child
//     process, and a client in a third process over TCP. Its CPU is that of reprise serve alone, as Linux counts it, in steps of
//     10 ms; elsewhere the row is left out.
//
// # Two builds
//
// With --against a figure is measured with two programs in turn, one directly after the other,
// and which of them is first changes with each pair. What is printed is the median of each and
// the median of the ratios of the pairs, in which the speed of the machine at that
// time cancels out. A ratio within a run, such as frames / raw appends, is compared
// as a row of its own.
//
// # A cluster
//
// The figure cluster runs each node in a process of its own, and one NATS server or
// three in this one; all share the machine's cores and its disk. A kill is SIGKILL, while
// models of the node's agents do not answer: the times are those at which the server stored
// each agent's next frame.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

func main() { os.Exit(start(os.Args[1:])) }

// start runs a child process of a figure, or the command.
func start(args []string) int {
	if len(args) > 0 && args[0] == product {
		return cli.Main(args, os.Stdin, os.Stdout, os.Stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if child := children[strings.Join(args, " ")]; child != nil {
		err = child(context.Background(), os.Stdin, os.Stdout) // its parent ends it, also when both are interrupted
	} else {
		cmd := command(os.Stdout, os.Stderr)
		cmd.SetArgs(args)
		err = cmd.ExecuteContext(ctx)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err) // the exit code reports it too
		return 1
	}
	return 0
}

// product is the child process that is the program reprise.
const product = "reprise"

// children are the child processes of figures.
var children = map[string]func(context.Context, io.Reader, io.Writer) error{
	"model-server": serveModel, "loop": serveLoop, "client": serveClient, "node": serveNode,
}

// work is how much the figures measure, beside the options that all have.
type work struct {
	idle     int   // agents that memory counts
	indexed  int   // agents that the index is built of
	stored   int   // events of the store that find searches
	verified int   // streams that replay verifies
	events   []int // lengths of the logs of agents that activation reads
	longest  int   // turns that the history of such an agent shows at most
	waiting  int   // agents that wait in a model call
	others   int   // agents that work beside those that are interrupted, or on a cluster
	atOnce   []int // agents at once of http
	lengths  []int // turns of an agent at which growth measures
	turns    int   // turns that growth measures at each length, at least
	rounds   int   // windows of each kind of node of snapshots
	nodes    []int
	replicas []int // of a cluster's streams: 1, on one NATS server, or 3, on three
	held     []int // agents in mid-turn when their node is killed; all but the first with the fewest nodes alone
	only     []string
}

// usual is what is measured unless flags say otherwise.
func usual() *work {
	return &work{
		idle: 10_000, indexed: 100_000, stored: 1_000_000, verified: 1000, events: []int{100, 10_000, 100_000}, longest: 250, waiting: 5000, others: 500,
		atOnce: []int{1, 16, 128}, lengths: []int{10, 100, 250, 1000}, turns: 400, rounds: 5,
		nodes: []int{1, 2, 3}, replicas: []int{1, 3}, held: []int{500, 10_000}, only: parts,
	}
}

// figures are all that can be measured.
func (w *work) figures() []bench.Figure {
	return []bench.Figure{
		bench.Turns, bench.Inputs,
		{Name: "activation", About: "how long a passive agent takes to act, by the length of its history", Run: w.activation},
		{Name: "memory", About: "bytes that an idle active agent takes", Run: w.memory},
		{Name: "growth", About: "what a turn costs after 10, 100, 250 and 1,000 turns of its agent", Run: w.growth},
		{Name: "waiting", About: "what agents cost while they wait for their models", Run: w.waits},
		{Name: "snapshots", About: "turns with snapshots, and with the index too, beside turns without", Run: w.snapshots},
		{Name: "index", About: "the index of many agents: how fast it is built, how long a page takes", Run: w.index},
		{Name: "find", About: "effects, find and why asked of a node with many events, beside SQLite's scan of its index", Run: w.find},
		{Name: "replay", About: "logs folded, forked, opened and verified, beside fetching their messages", Run: w.replay},
		{Name: "interrupt", About: "how soon an interrupt reaches a running tool while other agents work", Run: w.interrupts},
		{Name: "cluster", About: "several nodes, one NATS server and three: asks, turns, a leave, a join, a kill", Run: w.cluster},
		{Name: "http", About: "turns against a model server over HTTP beside a bare loop that fsyncs a file", Run: w.http},
		{Name: "serve", About: "the same as users run it: reprise serve and a client, each a process of its own", Run: w.serve},
	}
}

// command is the command line.
func command(out, progress io.Writer) *cobra.Command {
	o, w := bench.Options{Out: out, Progress: progress, Tune: cli.Tune}, usual()
	var versus versus
	format := "table"
	cmd := &cobra.Command{
		Use: "bench [NAME...]", Short: "Measure this machine: nodes beside what they stand on",
		Long:         "Measure this machine: nodes beside what they stand on; without names turns, inputs, activation and memory.\n" + bench.List(w.figures()),
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, part := range w.only {
				if !slices.Contains(parts, part) {
					return fmt.Errorf("the benchmark cluster has no part %q: the parts are %s", part, strings.Join(parts, ", "))
				}
			}
			o.JSON = format == "json"
			if versus.old != "" {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				versus.fresh, versus.names, versus.flags = self, args, passedOn(cmd.Flags())
				return versus.run(cmd.Context(), o)
			}
			if len(args) == 0 {
				args = []string{"turns", "inputs", "activation", "memory"}
			}
			chosen, err := o.Choose(w.figures(), args)
			if err != nil {
				return err
			}
			return bench.Run(cmd.Context(), o, chosen...)
		},
	}
	f := cmd.Flags()
	o.Flags(f)
	f.StringVarP(&format, "output", "o", format, "json prints one object a row")
	f.IntVar(&w.stored, "events", w.stored, "find: how many events the store has")
	f.IntSliceVar(&w.nodes, "nodes", w.nodes, "cluster: how many nodes")
	f.IntSliceVar(&w.replicas, "replicas", w.replicas, "cluster: 1, on one NATS server, or 3, on three")
	f.IntSliceVar(&w.held, "held", w.held, "cluster: how many agents are in mid-turn when their node is killed")
	f.StringSliceVar(&w.only, "only", w.only, "cluster: parts of it")
	f.StringVar(&versus.old, "against", "", "another build of this program, or of a program reprise that has benchmarks: measure with it and with this one in turn, and print the ratios new to old")
	f.IntVar(&versus.pairs, "pairs", 5, "with --against: how often each of them measures each benchmark")
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

// per divides what n agents, or as much work, took.
func per(took int64, n int) float64 { return float64(max(0, took)) / float64(n) }

// median of a list, or 0 of an empty one.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
