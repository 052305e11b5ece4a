// Package bench measures agents at work beside the JetStream that they stand on, in one
// process: what reprise bench prints, and what the program cmd/bench measures more with.
//
// # What is compared
//
//   - The ceiling is raw appends: the four frames of an ordinary turn, as read
//     from the log, with their headers, stream and expected sequence, to the
//     subjects of the same agents in the same streams, one outstanding per
//     agent. It uses connections of its own and the fastest client tried here:
//     one reply subscription a connection and a channel per agent.
//   - The runtime is turns of two model calls and one tool call, asked through
//     the prompt endpoint, one outstanding per agent; model and tool take no time,
//     so that all of a turn's latency is added. A worker takes a new agent
//     after a few turns: what is measured is the runtime, not the
//     copying of ever longer histories.
//   - Raw windows lie before and after the runtime's, on streams that were
//     emptied before each, and without the node, whose followers and endpoints are
//     the runtime's cost. Their mean is what ratios are to.
//   - CPU, allocations and goroutine runs are the whole process's: the embedded
//     server, the node and its clients. Nothing is subtracted. The CPU of raw
//     appends is that of the server and the publishers. Goroutine runs are
//     estimated: the scheduler measures one in eight.
//
// # Guarantees
//
//   - Every ratio is to something measured in the same run, on the same store,
//     with as many agents.
//   - Nothing is left behind: folders, processes and connections end with Run,
//     also when it fails or its context does.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Options say how to measure and where to print. The zero value of every field is its
// default.
type Options struct {
	// JSON prints one object a row in place of a table.
	JSON bool
	// Out is where the figures go. Nil: standard output.
	Out io.Writer
	// Progress receives what is being done, and with JSON the header. Nil: nothing is printed.
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
	// Tune sets the Go runtime up for a node in this process whose server syncs in a mode,
	// as the program does for its own. Nil: nothing is set up.
	Tune func(sync string)
}

func (o Options) withDefaults() Options {
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if len(o.Sync) == 0 {
		o.Sync = []string{"always", "relaxed"}
	}
	if len(o.Agents) == 0 {
		o.Agents = []int{1, 64, 512}
	}
	if o.Window == 0 {
		o.Window = 900 * time.Millisecond
	}
	if o.Tune == nil {
		o.Tune = func(string) {}
	}
	return o
}

// Lab is what the figures of one run share.
type Lab struct {
	Options
	*Report
	// Folder is removed at the end of the run.
	Folder string
}

// Figure is something to measure.
type Figure struct {
	Name, About string
	Run         func(*Lab, context.Context) error
}

// Run measures figures and prints them. When ctx ends it stops, removes its folders and
// returns the cause.
func Run(ctx context.Context, o Options, figures ...Figure) (err error) {
	o = o.withDefaults()
	dir, err := os.MkdirTemp(o.Dir, "reprise-bench-")
	if err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l := &Lab{Options: o, Report: NewReport(o.Out, o.JSON), Folder: dir}
	if err := l.header(ctx); err != nil {
		return err
	}
	for _, f := range figures {
		if err := f.Run(l, ctx); err != nil {
			if ctx.Err() != nil { // what it met then is of no interest
				err = ctx.Err()
			}
			return fmt.Errorf("measure %s: %w", f.Name, err)
		}
		if err := l.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Say prints what is being done.
func (l *Lab) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.Progress, format+"\n", args...) // progress is a courtesy
}

// Each opens a store for every sync mode, one after the other, and prints what f has found.
func (l *Lab) Each(ctx context.Context, f func(context.Context, *Store) error) error {
	for _, mode := range l.Sync {
		if err := l.With(ctx, mode, f); err != nil {
			return err
		}
		if err := l.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Cells measures for every sync mode and number of agents.
func (l *Lab) Cells(ctx context.Context, measure func(context.Context, *Store, int) error) error {
	return l.Each(ctx, func(ctx context.Context, s *Store) error {
		for _, n := range l.Agents {
			if err := measure(ctx, s, n); err != nil {
				return err
			}
		}
		return nil
	})
}
