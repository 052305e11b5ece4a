package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/providertest"
)

// turnsEach is how many turns an agent of http and serve does before its worker takes a
// new one.
const turnsEach = 4

// serveModel serves a scripted model over HTTP until in ends, and writes its address first.
func serveModel(_ context.Context, in io.Reader, out io.Writer) error {
	s, err := providertest.Start(providertest.TwoStep(bench.ToolName, bench.ToolInput), providertest.Config{Lenient: true, Forget: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := json.NewEncoder(out).Encode(s.URL); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// withModel starts a model server, in a process of its own so that its CPU is not ours.
func withModel(ctx context.Context, f func(url string) error) (err error) {
	m, err := begin(ctx, "model-server")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop(ctx, nil)) }()
	var url string
	if err := m.hear(bench.Patience, &url); err != nil {
		return err
	}
	return f(url)
}

// order is what a child process reads that does turns.
type order struct {
	URL          string
	Dir          string // for files of the process
	AtOnce       int
	Warm, Window time.Duration
	PID          int // of the process whose CPU counts; zero: its own
}

// serveAsker reads an order and does its turns. open returns what does a turn of a worker.
func serveAsker(ctx context.Context, in io.Reader, out io.Writer, open func(order) (turn func(ctx context.Context, worker, number int) error, err error)) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return err
	}
	turn, err := open(o)
	if err != nil {
		return err
	}
	turns := make([]int, o.AtOnce)
	got, theirs, err := driveBeside(ctx, []int{o.PID}, o.AtOnce, o.Warm, o.Window, func(ctx context.Context, w int) (time.Duration, error) {
		start := time.Now()
		err := turn(ctx, w, turns[w])
		turns[w]++
		return time.Since(start), err
	})
	if err != nil {
		return err
	}
	if o.PID > 0 {
		got.CPU = theirs
	}
	return json.NewEncoder(out).Encode(got)
}

// serveClient asks agents over TCP as a program of a user, by an order that it reads.
func serveClient(ctx context.Context, in io.Reader, out io.Writer) error {
	return serveAsker(ctx, in, out, func(o order) (func(context.Context, int, int) error, error) {
		c, err := client.Connect(ctx, client.Options{URL: o.URL})
		return func(ctx context.Context, worker, number int) error {
			return bench.Ask(ctx, c, bench.AgentID(worker, number/turnsEach))
		}, err
	})
}

// contest is what http and serve compare in a mode, with so many agents at once.
type contest struct {
	*bench.Lab
	mode, model string
	n           int
}

// order is the work of a child process.
func (c contest) order(url string) order {
	return order{URL: url, AtOnce: c.n, Warm: c.Window / 2, Window: 2 * c.Window}
}

// loop measures loops in a process of their own, which runs with Go's
// defaults: what a node sets up for itself does not change them.
func (c contest) loop(ctx context.Context) (got bench.Tally, err error) {
	o := c.order(c.model)
	if o.Dir, err = os.MkdirTemp(c.Folder, "loop-"); err != nil {
		return got, err
	}
	return got, once(ctx, "loop", o, &got)
}

// rows compares turns with those of loops.
func (c contest) rows(turns, turn, how, cpu string, loop, got bench.Tally) []bench.Row {
	row := func(figure string, value float64, unit string) bench.Row {
		return bench.Row{Figure: figure, Agents: c.n, Sync: c.mode, Value: value, Unit: unit}
	}
	rows := []bench.Row{
		row("loop with fsync: turns"+how, loop.Rate(), "turns/s"),
		row(turns+how, got.Rate(), "turns/s").Of(loop.Rate(), "loop with fsync"),
		row("loop with fsync: p50"+how, loop.MS(0.5), "ms"),
		row("loop with fsync: p99"+how, loop.MS(0.99), "ms"),
		row(turn+" p50"+how, got.MS(0.5), "ms"),
		row(turn+" p99"+how, got.MS(0.99), "ms"),
		row("loop with fsync: CPU per 1,000 turns"+how, loop.CPUPer(1000), "s"),
	}
	if got.CPU > 0 {
		rows = append(rows, row(cpu+" per 1,000 turns"+how, got.CPUPer(1000), "s").Of(loop.CPUPer(1000), "loop with fsync"))
	}
	return rows
}

// http measures turns whose model is a server in a process of its own.
func (w *work) http(l *bench.Lab, ctx context.Context) error {
	return withModel(ctx, func(url string) error {
		return l.Each(ctx, func(ctx context.Context, s *bench.Store) error {
			for _, n := range w.atOnce {
				l.Say("sync %s, %d at once: turns over HTTP", s.Sync, n)
				c := contest{l, s.Sync, url, n}
				loop, err := c.loop(ctx)
				if err != nil {
					return err
				}
				got, _, err := s.Turns(ctx, openai.New("", openai.BaseURL(url), openai.Name("bench")), n, turnsEach, 2*l.Window)
				if err != nil {
					return err
				}
				if err := l.Add(c.rows("turns", "turn", ", streamed", "CPU", loop, got)...); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// serve measures a node as users run it beside loops. The node, its model and its client
// are processes of their own.
func (w *work) serve(l *bench.Lab, ctx context.Context) error {
	return withModel(ctx, func(url string) error {
		for _, mode := range l.Sync {
			n := w.atOnce[len(w.atOnce)/2]
			l.Say("sync %s, %d at once: turns of reprise serve", mode, n)
			c := contest{l, mode, url, n}
			loop, err := c.loop(ctx)
			if err != nil {
				return err
			}
			got, err := c.served(ctx)
			if err != nil {
				return err
			}
			if err := errors.Join(l.Add(c.rows("served turns", "served turn", "", "CPU of serve", loop, got)...), l.Flush()); err != nil {
				return err
			}
		}
		return nil
	})
}

// serveConfig is a reprise.yaml with the agent, the model and the tool of the other figures.
const serveConfig = `agents:
  %s: {model: %s, instructions: %q, tools: [%s]}
providers:
  bench: {base_url: %q}
`

// served starts reprise serve and measures the turns of a client of it.
func (c contest) served(ctx context.Context) (got bench.Tally, err error) {
	dir, err := os.MkdirTemp(c.Folder, "serve-")
	if err != nil {
		return got, err
	}
	config := filepath.Join(dir, "reprise.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, serveConfig, bench.Kind, bench.ModelName, bench.Instructions, bench.ToolName, c.model), 0o600); err != nil {
		return got, err
	}
	node, err := begin(ctx, product, "serve", "-o", "json", "--config", config,
		"--data", filepath.Join(dir, "data"), "--sync", c.mode, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, node.stop(ctx, os.Interrupt)) }()
	var ready struct{ NATS string }
	if err := node.hear(bench.Patience, &ready); err != nil {
		return got, err
	}
	o := c.order(ready.NATS)
	o.PID = node.cmd.Process.Pid
	err = once(ctx, "client", o, &got)
	if runtime.GOOS != "linux" {
		got.CPU = 0 // where cpuOf does not know it
	}
	return got, err
}
