package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Options say what to measure and where to tell. The zero value of every field
// is its default.
type Options struct {
	// Names of the figures, as [Names] lists them. Empty: core.
	Names []string
	// JSON prints one object a row in place of a table.
	JSON bool
	// In is what child processes read. Nil: standard input.
	In io.Reader
	// Out is where the figures go. Nil: standard output.
	Out io.Writer
	// Progress hears what is being done, and with JSON the header. Nil: nobody.
	Progress io.Writer
	// Dir is where temporary folders are made; its disk is what is measured.
	// Empty: the system's folder for them.
	Dir string
	// Sync lists the embedded server's modes. Empty: always and relaxed.
	Sync []string
	// Agents lists how many are at work at once. Empty: 1, 64, 512.
	Agents []int
	// Window is how long a window of turns lasts; others are in proportion.
	// Zero: 0.9 seconds.
	Window time.Duration
	// Idle is how many agents the memory figure counts. Zero: 10,000.
	Idle int
	// Indexed is how many agents the index is built of. Zero: 100,000.
	Indexed int
	// Events lists the lengths of the logs of agents that activation reads. Empty:
	// 100, 10,000 and 100,000.
	Events []int
	// IDs lists how many processed ids the agents of activation have whose
	// deduplication window is full. Empty: 4,096 and 16,384.
	IDs []int
	// Waiting is how many agents the figure waiting holds in a model call. Zero: 5,000.
	Waiting int
	// Others is how many agents work beside those that are interrupted. Zero: 500.
	Others int
	// Profile receives a CPU profile of the first window of turns. Nil: none.
	Profile io.Writer
	// Tune sets the Go runtime up for a node in this process whose server syncs in a mode,
	// as the program does for its own. Nil: nothing is set up.
	Tune func(sync string)
	// Program is the program reprise, which child processes run. Empty: this program.
	Program string

	// Nodes lists how many nodes the figure cluster runs, each in a process of its
	// own. Empty: 1, 2, 3.
	Nodes []int
	// Replicas lists how many servers keep each message of the cluster: with 1 there
	// is one NATS server, with 3 there are three. Empty: 1, 3.
	Replicas []int
	// Held lists how many agents of one node are in mid-turn when it is killed; the
	// second and further ones are measured with the fewest nodes alone. Empty: Agents
	// if set, else 500 and 10,000.
	Held []int
	// Only lists the parts of the figure cluster, as [Parts] names them. Empty: all.
	Only []string
	// Settle is how long the figure cluster waits for each node to own its share of
	// the partitions; it tells what they own if that does not come. Zero: 8 seconds.
	Settle time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if len(o.Names) == 0 {
		o.Names = []string{"core"}
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Tune == nil {
		o.Tune = func(string) {}
	}
	if len(o.Sync) == 0 {
		o.Sync = []string{"always", "relaxed"}
	}
	if len(o.Held) == 0 {
		o.Held = o.Agents
	}
	if len(o.Held) == 0 {
		o.Held = []int{500, 10_000}
	}
	if o.Waiting == 0 {
		o.Waiting = 5000
	}
	if len(o.Agents) == 0 {
		o.Agents = []int{1, 64, 512}
	}
	if o.Window == 0 {
		o.Window = 900 * time.Millisecond
	}
	if o.Idle == 0 {
		o.Idle = 10000
	}
	if o.Indexed == 0 {
		o.Indexed = 100000
	}
	if o.Others == 0 {
		o.Others = 500
	}
	if len(o.Events) == 0 {
		o.Events = []int{100, 10_000, 100_000}
	}
	if len(o.IDs) == 0 {
		o.IDs = []int{4096, 16_384}
	}
	if o.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("find this program, to start child processes: %w", err)
		}
		o.Program = self
	}
	return o, o.clusterDefaults()
}

// lab is what the figures of one run share.
type lab struct {
	Options
	dir string
	out *report
}

type figure struct {
	name, about string
	run         func(*lab, context.Context) error
}

// Names that Run takes and Names does not list: the child processes of figures.
const (
	modelServer   = "model-server"
	clusterNode   = "cluster-node"
	loopWithFsync = "loop"
	promptClient  = "prompt-client"
)

var children = map[string]func(context.Context, io.Reader, io.Writer) error{
	modelServer:   serveModel,
	clusterNode:   serveNode,
	loopWithFsync: serveLoop,
	promptClient:  servePrompts,
}

// Child reports whether name is one of a child process, which Run takes alone and
// which no person gives.
func Child(name string) bool { return children[name] != nil }

var figures = []figure{
	{"core", "turns, inputs, activation and memory, in about a minute (the default)", (*lab).core},
	{"turns", "turns asked through the prompt endpoint beside raw appends: rate, latency, CPU, allocations", func(l *lab, ctx context.Context) error { return l.cells(ctx, l.turns) }},
	{"inputs", "inputs through the stream REPRISE_IN beside that stream alone", func(l *lab, ctx context.Context) error { return l.cells(ctx, l.inputs) }},
	{"activation", "how long a passive agent takes to act, by the length of its history and by its processed ids", (*lab).activations},
	{"growth", "what a turn costs after 10, 100, 250 and 1,000 turns of its agent", (*lab).growth},
	{"waiting", "what agents cost while they wait for their models", (*lab).waits},
	{"snapshots", "turns with snapshots, and with the index too, beside turns without", func(l *lab, ctx context.Context) error { return l.cells(ctx, l.snapshots) }},
	{"memory", "bytes that an idle active agent takes", (*lab).memory},
	{"index", "the index of many agents: how fast it is built, how long a page takes", (*lab).index},
	{"interrupt", "how soon an interrupt reaches a running tool while other agents work", (*lab).interrupts},
	{"cluster", "several nodes, one NATS server and three: asks, a kill, a leave, a join", (*lab).cluster},
	{"http", "turns against a model server over HTTP beside a bare loop that fsyncs a file", (*lab).http},
	{"serve", "the same as users run it: reprise serve and a NATS client, each a process of its own", (*lab).serve},
}

// Names lists the figures that can be measured; the first is the default.
func Names() []string {
	names := make([]string, len(figures))
	for i, f := range figures {
		names[i] = f.name
	}
	return names
}

// About says in one line what a figure of [Names] is; empty for others.
func About(name string) string {
	for _, f := range figures {
		if f.name == name {
			return f.about
		}
	}
	return ""
}

// Run measures the named figures and prints them. When ctx ends it stops,
// removes its folders and returns the cause.
func Run(ctx context.Context, o Options) (err error) {
	o, err = o.withDefaults()
	if err != nil {
		return err
	}
	if len(o.Names) == 1 && Child(o.Names[0]) {
		return children[o.Names[0]](ctx, o.In, o.Out)
	}
	chosen, err := choose(o.Names)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.Dir, "reprise-bench-")
	if err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); gone != nil && err == nil {
			err = fmt.Errorf("remove what was measured in: %w", gone)
		}
	}()
	l := &lab{Options: o, dir: dir, out: &report{json: o.JSON, out: o.Out}}
	if err := l.header(ctx); err != nil {
		return err
	}
	for _, f := range chosen {
		if err := f.run(l, ctx); err != nil {
			return fmt.Errorf("measure %s: %w", f.name, err)
		}
		if err := l.out.flush(); err != nil {
			return err
		}
	}
	return nil
}

func choose(names []string) ([]figure, error) {
	var chosen []figure
	for _, name := range names {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no benchmark named %q: choose of %s", name, strings.Join(Names(), ", "))
		}
		chosen = append(chosen, figures[i])
	}
	return chosen, nil
}

// say tells what is being done.
func (l *lab) say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.Progress, format+"\n", args...) // progress is a courtesy
}

// each opens a store for every sync mode, one after the other, and prints what
// f has found there.
func (l *lab) each(ctx context.Context, f func(context.Context, *store) error) error {
	for _, mode := range l.Sync {
		if err := l.with(ctx, mode, f); err != nil {
			return err
		}
		if err := l.out.flush(); err != nil {
			return err
		}
	}
	return nil
}

// cells measures for every sync mode and number of agents.
func (l *lab) cells(ctx context.Context, measure ...func(context.Context, *store, int) error) error {
	return l.each(ctx, func(ctx context.Context, s *store) error { return l.allAgents(ctx, s, measure...) })
}

func (l *lab) allAgents(ctx context.Context, s *store, measure ...func(context.Context, *store, int) error) error {
	for _, n := range l.Agents {
		for _, m := range measure {
			if err := m(ctx, s, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// core is what a reader wants to see first.
func (l *lab) core(ctx context.Context) error {
	err := l.each(ctx, func(ctx context.Context, s *store) error {
		if err := l.allAgents(ctx, s, l.turns, l.inputs); err != nil {
			return err
		}
		return l.activation(ctx, s)
	})
	if err != nil {
		return err
	}
	return l.memory(ctx)
}

func (l *lab) activations(ctx context.Context) error {
	return l.each(ctx, func(ctx context.Context, s *store) error { return l.activation(ctx, s, l.IDs...) })
}
