package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// served is the work of the figure serve, for servedWindows windows.
var served = plan{AtOnce: 16, Agents: 128, Turns: 4}

const servedWindows = 3

// serve measures a node as users run it beside loops with the same plan. The
// node, its model and its client are processes of their own.
func (l *lab) serve(ctx context.Context) (err error) {
	m, err := l.startModel(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	p := served
	p.Window = servedWindows * l.Window
	for _, mode := range l.Sync {
		l.say("sync %s, %d at once: turns of reprise serve", mode, p.AtOnce)
		loop, err := l.fileLoop(ctx, m.Stream, true, p)
		if err != nil {
			return err
		}
		got, err := l.serveTurns(ctx, mode, m.Stream, p)
		if err != nil {
			return err
		}
		if err := l.out.add(serveRows(mode, p.AtOnce, loop, got)...); err != nil {
			return err
		}
		if err := l.out.flush(); err != nil {
			return err
		}
	}
	return nil
}

func serveRows(mode string, n int, loop, got tally) []Row {
	row := func(figure string, value float64, unit string) Row {
		return Row{Figure: figure, Agents: n, Sync: mode, Value: value, Unit: unit}
	}
	rows := []Row{
		row("loop with fsync: turns", loop.rate(), "turns/s"),
		row("served turns", got.rate(), "turns/s").of(loop.rate(), "loop with fsync"),
		row("loop with fsync: p50", loop.ms(0.5), "ms"),
		row("loop with fsync: p99", loop.ms(0.99), "ms"),
		row("served turn p50", got.ms(0.5), "ms"),
		row("served turn p99", got.ms(0.99), "ms"),
		row("loop with fsync: CPU per 1,000 turns", loop.cpuPer(1000), "s"),
	}
	if runtime.GOOS == "linux" { // where cpuOf knows it
		rows = append(rows, row("CPU of serve per 1,000 turns", got.cpuPer(1000), "s").of(loop.cpuPer(1000), "loop with fsync"))
	}
	return rows
}

// serveTurns starts reprise serve and measures the turns of a client of it.
func (l *lab) serveTurns(ctx context.Context, mode, model string, p plan) (got tally, err error) {
	dir, err := os.MkdirTemp(l.dir, "serve-")
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	config := filepath.Join(dir, "reprise.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, serveConfig, kind, modelName, instructions, toolName, model), 0o600); err != nil {
		return got, err
	}
	node, err := spawn(ctx, "node of reprise serve", l.Program, "serve", "-o", "json", "--config", config,
		"--data", filepath.Join(dir, "data"), "--sync", mode, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, node.interrupt()) }()
	var ready struct{ NATS string }
	if err := node.ready(&ready); err != nil {
		return got, err
	}
	return l.remote(ctx, promptClient, target{URL: ready.NATS}, p, func() time.Duration { return cpuOf(node.cmd.Process.Pid) })
}

// serveConfig is a reprise.yaml with the agent, the model and the tool of the
// other figures.
const serveConfig = `agents:
  %s: {model: %s, instructions: %q, tools: [%s]}
providers:
  bench: {base_url: %q}
`

// cpuOf is the CPU time, user and system, that a process has used. It is known on
// Linux alone, in steps of 10 ms; elsewhere, and of one that has ended, it is 0.
func cpuOf(pid int) (used time.Duration) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil || runtime.GOOS != "linux" {
		return 0
	}
	_, stat, _ = bytes.Cut(stat, []byte(") ")) // the command's name is the only field with spaces
	const utime, stime = 11, 12                // counted from the state, the first one behind the name
	for i, field := range bytes.Fields(stat) {
		if i == utime || i == stime {
			ticks, _ := strconv.Atoi(string(field))
			used += time.Duration(ticks) * time.Second / 100 // USER_HZ
		}
	}
	return used
}
