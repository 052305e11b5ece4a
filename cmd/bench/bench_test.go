package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
	"github.com/reprise-dev/reprise/providers/providertest"
)

// TestMain is also the child processes that figures start, and the programs that
// TestAgainst compares.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); {
	case name == "old" || name == "new":
		if err := standIn(name, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) > 1 && (os.Args[1] == product || children[os.Args[1]] != nil):
		os.Exit(start(os.Args[1:]))
	default:
		os.Exit(m.Run())
	}
}

// tiny is work that takes a moment. Its numbers mean nothing.
func tiny() *work {
	return &work{
		idle: 20, indexed: 300, stored: 900, verified: 20, events: []int{10, 1000}, longest: 25, waiting: 50, others: 3, atOnce: []int{2},
		lengths: []int{3, 6}, turns: 80, rounds: 2, nodes: []int{2}, replicas: []int{1}, held: []int{5}, only: parts,
	}
}

// measure measures a figure and returns its rows; nothing may be left behind.
func measure(t *testing.T, ctx context.Context, w *work, o bench.Options, name string) ([]bench.Row, error) {
	t.Helper()
	o.Dir, o.Window = t.TempDir(), max(o.Window, 60*time.Millisecond)
	var out bytes.Buffer
	o.JSON, o.Out = true, &out
	chosen, err := o.Choose(w.figures(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	failed := bench.Run(ctx, o, chosen...)
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	var rows []bench.Row
	for lines := json.NewDecoder(&out); lines.More(); {
		var row bench.Row
		if err := lines.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows, failed
}

// TestFigures measures each figure for a moment, and holds that what it is there for is printed.
func TestFigures(t *testing.T) {
	embeddedtest.Long(t, "figures of more than one node, or beside others on the machine")
	for name, want := range map[string]map[int][]string{
		"activation": {1: {"activation with 10 events, p50", "activation with 1,000 events, p50", "activation with 1,000 events, whole log, p50"}},
		"memory":     {20: {"memory of an idle active agent", "memory of an agent that has left it"}},
		"growth":     {growing: {"CPU of turn 3", "bytes allocated of turn 3", "CPU of turn 6", "bytes allocated of turn 6"}},
		"waiting": {50: {
			"waiting, asked: heap and stacks of an agent", "waiting, asked: goroutines of an agent", "waiting, sent: CPU of all", "waiting, sent: NATS messages of all",
		}},
		"snapshots": {3: {"turns without snapshots and index", "turns with snapshots", "turns with snapshots and index", "turns with snapshots and index: CPU per 1,000 turns"}},
		"index":     {300: {"index built", "approvals", "usage --by agent --since 24h", "effects --tool --where"}},
		"find":      {100: {"effects, all", "effects, a page", "why, of an agent with few events", "why, of an agent with a long log", "find: a word that is once", "find: a word that all have, a page", "find: a key"}},
		"replay": {
			1:  {"replay of 1,000 events", "fork at event 1,000", "first rows of a timeline, event 1,000"},
			20: {"verify streams of 50 events"},
		},
		"interrupt": {
			1: {"interrupt to a tool's end, alone, p50"},
			4: {"interrupt to a tool's end, others at a model's pace, p99", "interrupt to a tool's end, others as fast as they can, p99"},
		},
		"http":  {2: {"turns, streamed", "turn p99, streamed", "loop with fsync: turns, streamed", "CPU per 1,000 turns, streamed"}},
		"serve": {2: {"served turns", "served turn p99", "loop with fsync: turns", "loop with fsync: CPU per 1,000 turns"}},
		"cluster": {
			1:  {"ask of an agent at the endpoint's node p50", "ask of an agent at another node p99"},
			3:  {"turns", "turn p50", "CPU per 1,000 turns"},
			64: {"leave: longest ask", "leave: until it has gone", "join: longest ask", "join: from its start until shares are even", "moved partition: longest ask"},
			5:  {"killed: until the next append p50", "killed: until the last one's", "as many raw appends", "killed: agents that were not back in time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := measure(t, t.Context(), tiny(), bench.Options{Sync: []string{"relaxed"}, Agents: []int{3}}, name)
			if err != nil {
				t.Fatal(err)
			}
			has(t, rows[1:], want) // the first is of the disk
		})
	}
}

// has checks that every row is whole and that figures are there for a number of agents.
func has(t *testing.T, rows []bench.Row, want map[int][]string) {
	t.Helper()
	none := []string{"killed: agents that were not back in time", "leave: failed asks", "join: failed asks"}
	for _, r := range rows {
		if r.Figure == "" || r.Unit == "" || r.Agents == 0 || r.Sync == "" || r.Value < 0 || r.Value > 0 && (r.Ratio > 0) != (r.RatioTo != "") ||
			r.Value > 0 && slices.Contains(none, r.Figure) {
			t.Errorf("the row is not whole: %+v", r)
		}
	}
	for agents, figures := range want {
		for _, f := range figures {
			if !slices.ContainsFunc(rows, func(r bench.Row) bool { return r.Figure == f && r.Agents == agents }) {
				t.Errorf("%s with %d agents is missing", f, agents)
			}
		}
	}
}

// Of three servers each node has one of its own.
func TestClusterReplicated(t *testing.T) {
	embeddedtest.Long(t, "three servers")
	w := tiny()
	w.nodes, w.replicas, w.only = []int{1}, []int{3}, []string{"asks"}
	rows, err := measure(t, t.Context(), w, bench.Options{Sync: []string{"relaxed"}}, "cluster")
	if err != nil {
		t.Fatal(err)
	}
	has(t, rows[1:], map[int][]string{1: {"ask of an agent at the endpoint's node p50"}})
}

// TestCanceled holds that a run that is stopped ends soon and leaves nothing.
func TestCanceled(t *testing.T) {
	embeddedtest.Long(t, "processes")
	for _, f := range usual().figures() {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		start := time.Now()
		_, err := measure(t, ctx, usual(), bench.Options{Window: time.Hour}, f.Name)
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 3*time.Minute {
			t.Errorf("%s ended after %v: %v", f.Name, took, err)
		}
		cancel()
	}
}

// TestServeRefused holds that the reason why a node does not start is reported.
func TestServeRefused(t *testing.T) {
	embeddedtest.Long(t, "processes")
	_, err := measure(t, t.Context(), tiny(), bench.Options{Sync: []string{"sometimes"}}, "serve")
	if err == nil || !strings.Contains(err.Error(), "--sync") {
		t.Errorf("%v", err)
	}
}

// TestCommand holds that names and parts that there are not are refused.
func TestCommand(t *testing.T) {
	for want, args := range map[string][]string{
		"the names are turns, inputs, activation": {"speed"},
		"the parts are asks, turns":               {"cluster", "--only", "sums"},
		"--pairs of at least 1":                   {"turns", "--against", "x", "--pairs", "0"},
	} {
		cmd := command(&bytes.Buffer{}, &bytes.Buffer{})
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

// TestLoop holds that each loop keeps the four messages of each turn in a file of its own.
func TestLoop(t *testing.T) {
	model, err := providertest.Start(providertest.TwoStep(bench.ToolName, bench.ToolInput), providertest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = model.Close() }()
	for range 2 * turnsEach {
		file := filepath.Join(t.TempDir(), "loop")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		l := loop{file: f, client: http.DefaultClient, url: model.URL}
		if err := l.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(file)
		if lines := strings.Count(string(kept), "\n"); err != nil || lines != bench.PerTurn {
			t.Errorf("a turn kept %d messages, want %d: %v", lines, bench.PerTurn, err)
		}
		_ = f.Close()
	}
}

// standIn is a program that TestAgainst compares. It notes its name beside itself
// and prints rows that depend on how often it was asked: the new one is 1.5 times
// as fast, but for a slow start. The old one is a program reprise, which has a command bench.
func standIn(name string, args []string) error {
	if slices.Contains(args, "--help") {
		switch {
		case name == "new":
			fmt.Println("Measure\n\n  turns       turns\n  index       index\n  growth      growth")
		case args[0] == "bench":
			fmt.Println("Measure\n\n  turns       turns\n  index       index")
		default:
			fmt.Println("Agents\n\n  bench       Measure\n  turns       List turns")
		}
		return nil
	}
	notes := filepath.Join(filepath.Dir(os.Args[0]), "notes")
	if slices.Contains(args, "index") {
		return interrupted(notes, args[len(args)-1])
	}
	before, _ := os.ReadFile(notes) // the first one finds none
	value := float64(10 * (1 + strings.Count(string(before), name)))
	if name == "new" && value > 10 {
		value *= 1.5
	}
	rows := []bench.Row{
		{Figure: "fsync", Value: 1, Unit: "ms", Agents: 1},
		bench.Row{Figure: "turns", Agents: 8, Sync: "relaxed", Value: value, Unit: "turns/s"}.Of(2*value, "loop"),
		{Figure: "only " + name, Agents: 8, Sync: "relaxed", Value: 7, Unit: "ms"},
	}
	var err error
	for out := json.NewEncoder(os.Stdout); len(rows) > 0; rows = rows[1:] {
		err = errors.Join(err, out.Encode(rows[0]))
	}
	return errors.Join(err, os.WriteFile(notes, fmt.Appendf(before, "%s %s\n", name, strings.Join(args, " ")), 0o600))
}

// interrupted connects to an address, waits for an interrupt, and notes that it had time
// to clean up.
func interrupted(notes, address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is sent
	<-ctx.Done()
	return os.WriteFile(notes, []byte("cleaned up"), 0o600)
}

// standIns makes two programs in a folder and returns what compares them, and where they note
// what they did.
func standIns(t *testing.T) (v versus, notes string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	v = versus{old: filepath.Join(dir, "old"), fresh: filepath.Join(dir, "new"), names: []string{"turns"}, pairs: 3}
	if err := errors.Join(os.Symlink(self, v.old), os.Symlink(self, v.fresh)); err != nil {
		t.Fatal(err)
	}
	return v, filepath.Join(dir, "notes")
}

func TestAgainst(t *testing.T) {
	v, notes := standIns(t)
	v.flags = []string{"--agents=8"}
	var out, progress bytes.Buffer
	if err := v.run(t.Context(), bench.Options{Out: &out, Progress: &progress}); err != nil {
		t.Fatal(err)
	}
	const want = `
turns, medians of 3 pairs of old and new

  sync relaxed          unit  8 agents
  turns, old         turns/s      20.0
  turns              turns/s      30.0
    / old                  x      1.50
  turns / loop, old        x      0.50
  turns / loop             x      0.50
    / old                  x      1.00
  only new                ms      7.00
  only old, old           ms      7.00
`
	if out.String() != want {
		t.Errorf("%swant%s", &out, want)
	}
	noted, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	const turns = " turns -o json --agents=8\n"
	if order := strings.ReplaceAll(string(noted), turns, ", "); order != "old bench, new, new, old bench, old bench, new, " {
		t.Errorf("the programs were run so: %s", order)
	}
	v.names = []string{"turns", "serve"}
	if err := v.run(t.Context(), bench.Options{Out: &out, Progress: &progress}); err == nil || !strings.Contains(err.Error(), `old has no benchmark "serve"`) {
		t.Errorf("of a figure that one does not have: %v", err)
	}
}

// TestAgainstCanceled holds that a comparison which is stopped lets the program that
// measures clean up behind itself.
func TestAgainstCanceled(t *testing.T) {
	v, notes := standIns(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	v.names, v.flags = []string{"index"}, []string{l.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			cancel() // it measures now
			_ = c.Close()
		}
	}()
	if err := v.run(ctx, bench.Options{Out: &bytes.Buffer{}, Progress: &bytes.Buffer{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if noted, err := os.ReadFile(notes); string(noted) != "cleaned up" {
		t.Errorf("the program had no time to clean up: %q, %v", noted, err)
	}
}
