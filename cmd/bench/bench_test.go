package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/embeddedtest"
)

// TestMain is also the child processes that figures start, and the programs that
// TestAgainst compares.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "bench" && os.Args[1] != "serve" {
		code := m.Run()
		_ = os.RemoveAll(built.dir)
		os.Exit(code)
	}
	if err := program(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program is what this test is as a child process.
func program(args []string) error {
	switch {
	case len(args) == 2 && Child(args[1]):
		return Run(context.Background(), Options{Names: args[1:]})
	case args[0] == "bench":
		return standIn(args[1:])
	}
	return errors.New("this test is no node")
}

// built is the program reprise in a folder that TestMain removes.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// reprise builds the program once and returns its path.
func reprise(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "reprise-bench-test"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", built.dir, "github.com/reprise-dev/reprise/cmd/reprise").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "reprise")
}

// tiny are options under which a figure takes a moment. Its numbers mean nothing.
func tiny(t *testing.T, names ...string) Options {
	t.Helper()
	return Options{
		Names: names, Dir: t.TempDir(), Sync: []string{"relaxed"}, Agents: []int{1, 3}, Window: 60 * time.Millisecond,
		Idle: 20, Others: 3, Indexed: 300, Events: []int{10, 40}, IDs: []int{30}, Waiting: 100,
		Nodes: []int{2}, Replicas: []int{1}, Held: []int{5}, Settle: 1500 * time.Millisecond,
	}
}

// measure runs and gives the rows; nothing may be left behind. In short mode it skips all
// figures but one, turns.
func measure(t *testing.T, o Options) []Row {
	t.Helper()
	if !slices.Equal(o.Names, []string{"turns"}) {
		embeddedtest.Long(t, "a figure of more than one node, or beside others on the machine")
	}
	var out bytes.Buffer
	o.JSON, o.Out = true, &out
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	leftBehind(t, o)
	var rows []Row
	lines := json.NewDecoder(&out)
	lines.DisallowUnknownFields()
	for lines.More() {
		var row Row
		if err := lines.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows[1:] // the first is of the disk
}

func leftBehind(t *testing.T, o Options) {
	t.Helper()
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// has checks that every row is whole and that each figure is there for each
// number of agents.
func has(t *testing.T, rows []Row, agents []int, figures ...string) {
	t.Helper()
	seen := make(map[string]map[int]Row)
	for _, r := range rows {
		if r.Figure == "" || r.Unit == "" || r.Agents == 0 || r.Sync == "" || r.Value < 0 ||
			r.Value > 0 && (r.Ratio > 0) != (r.RatioTo != "") { // a window may be too short for a single one
			t.Errorf("the row is not whole: %+v", r)
		}
		if seen[r.Figure] == nil {
			seen[r.Figure] = make(map[int]Row)
		}
		seen[r.Figure][r.Agents] = r
	}
	for _, f := range figures {
		for _, n := range agents {
			if _, ok := seen[f][n]; !ok {
				t.Errorf("%s with %d agents is missing", f, n)
			}
		}
	}
}

func TestTurns(t *testing.T) {
	rows := measure(t, tiny(t, "turns"))
	has(t, rows, []int{1, 3}, "raw appends", "frames", "turns", "writes per turn", "turn p50", "turn p99", "CPU per 1,000 turns",
		"objects allocated per turn", "bytes allocated per turn", "goroutine runs per turn")
	raw := make(map[int]float64)
	for _, r := range rows {
		if r.Figure == "raw appends" {
			raw[r.Agents] = r.Value
		}
		if r.Figure == "CPU per 1,000 turns" && r.Ratio > 0 && r.RatioTo != "CPU per 4,000 raw appends" {
			t.Errorf("the CPU of turns is compared with %q", r.RatioTo)
		}
		if r.Figure == "writes per turn" && r.Value != perTurn {
			t.Errorf("a turn with %d agents took %v writes, want %d", r.Agents, r.Value, perTurn)
		}
		if r.Figure == "frames" && r.Value > 0 && raw[r.Agents] > 0 && r.RatioTo != "raw appends" {
			t.Errorf("frames are compared with %q", r.RatioTo)
		}
	}
}

func TestInputs(t *testing.T) {
	rows := measure(t, tiny(t, "inputs"))
	has(t, rows, []int{1, 3}, "input stream alone", "inputs, a turn each", "input to turn started p50", "input to turn started p99")
}

func TestActivation(t *testing.T) {
	defer func(n int) { longest = n }(longest)
	longest = 25
	rows := measure(t, tiny(t, "activation"))
	has(t, rows, []int{1}, "activation with 10 events, p50", "activation with 40 events, p50", "activation with 40 events, whole log, p50",
		"activation with 30 processed ids, p50", "activation with 30 processed ids, whole log, p50")
	for _, r := range rows {
		if r.Value == 0 {
			t.Errorf("%s took no time", r.Figure)
		}
	}
}

func TestGrowth(t *testing.T) {
	defer func(l []int, n, w int) { lengths, growthTurns, growthWarm = l, n, w }(lengths, growthTurns, growthWarm)
	lengths, growthTurns, growthWarm = []int{3, 6}, 80, 2
	rows := measure(t, tiny(t, "growth"))
	has(t, rows, []int{growthAgents}, "CPU of turn 3", "bytes allocated of turn 3", "CPU of turn 6", "bytes allocated of turn 6")
	for _, r := range rows {
		if strings.HasPrefix(r.Figure, "bytes") && r.Value == 0 || r.Figure == "bytes allocated of turn 6" && r.RatioTo != "bytes allocated of turn 3" {
			t.Errorf("a figure is missing or compared with nothing: %+v", r)
		}
	}
}

func TestWaiting(t *testing.T) {
	rows := measure(t, tiny(t, "waiting"))
	for i := range rows {
		rows[i].Value = max(0, rows[i].Value) // differences to an idle node, which so few agents hardly change
	}
	for _, how := range []string{"waiting, asked: ", "waiting, sent: "} {
		has(t, rows, []int{100}, how+"heap and stacks of an agent", how+"goroutines of an agent", how+"CPU of all", how+"NATS messages of all")
	}
	for _, r := range rows {
		if r.Figure == "waiting, asked: goroutines of an agent" && r.Value < 1 {
			t.Errorf("an agent that waits has %v goroutines", r.Value)
		}
	}
}

// TestMeter checks the counts of a window against work of a known size.
func TestMeter(t *testing.T) {
	const objects, size, runs = 1000, 1 << 10, 10_000
	used := meter()
	kept := make([][]byte, objects)
	for i := range kept {
		kept[i] = make([]byte, size)
	}
	for range runs {
		runtime.Gosched()
	}
	_, c := used()
	runtime.KeepAlive(kept)
	if c.objects < objects || c.bytes < objects*size {
		t.Errorf("%d objects and %d bytes were counted, want %d and %d at least", c.objects, c.bytes, objects, objects*size)
	}
	if c.runs < runs-2*latencySample || c.runs > 2*runs {
		t.Errorf("%d runs were counted, want about %d", c.runs, runs)
	}
}

func TestMemory(t *testing.T) {
	has(t, measure(t, tiny(t, "memory")), []int{20}, "memory of an idle active agent", "memory of an agent that has left it")
}

func TestSnapshots(t *testing.T) {
	defer func(n int) { rounds = n }(rounds)
	rounds = 2
	o := tiny(t, "snapshots")
	o.Agents = []int{3}
	has(t, measure(t, o), o.Agents, "turns without snapshots and index", "turns with snapshots", "turns with snapshots and index",
		"turns with snapshots and index: CPU per 1,000 turns")
}

func TestIndex(t *testing.T) {
	rows := measure(t, tiny(t, "index"))
	has(t, rows, []int{300}, "index built", "approvals", "usage --by agent --since 24h", "effects --tool --where")
}

func TestInterrupt(t *testing.T) {
	rows := measure(t, tiny(t, "interrupt"))
	has(t, rows, []int{1}, "interrupt to a tool's end, alone, p50", "interrupt to a tool's end, alone, most")
	has(t, rows, []int{4}, "interrupt to a tool's end, others at a model's pace, p99", "interrupt to a tool's end, others as fast as they can, p99")
}

func TestHTTP(t *testing.T) {
	defer func(n []int, warm int) { atOnce, warmTurns = n, warm }(atOnce, warmTurns)
	atOnce, warmTurns = []int{2}, 8
	rows := measure(t, tiny(t, "http"))
	for _, how := range []string{", whole answers", ", streamed"} {
		has(t, rows, []int{2}, "turns"+how, "turn p99"+how, "loop with fsync: turns"+how, "of it store"+how, "of it HTTP client"+how,
			"of it runtime"+how, "aim: 0.7 of raw appends / 4"+how, "model server's own CPU per 1,000 turns"+how)
	}
}

func TestServe(t *testing.T) {
	embeddedtest.Long(t, "processes")
	defer func(p plan, warm int) { served, warmTurns = p, warm }(served, warmTurns)
	served, warmTurns = plan{AtOnce: 2, Agents: 4, Turns: 4, Window: 1}, 8
	o := tiny(t, "serve")
	o.Sync, o.Program = []string{"relaxed", "always"}, reprise(t)
	rows := measure(t, o)
	for _, mode := range o.Sync {
		of := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Sync != mode })
		has(t, of, []int{2}, "served turns", "served turn p50", "served turn p99", "loop with fsync: turns", "loop with fsync: CPU per 1,000 turns")
		for _, r := range of {
			if r.Figure == "served turns" && (r.Value <= 0 || r.RatioTo != "loop with fsync") {
				t.Errorf("sync %s: %+v", mode, r)
			}
		}
	}
}

// TestServeRefused holds that the reason why a node does not start is reported.
func TestServeRefused(t *testing.T) {
	defer func(p plan) { served = p }(served)
	served = plan{AtOnce: 1, Agents: 1, Turns: 1}
	o := tiny(t, "serve")
	o.Out = &bytes.Buffer{}
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "this test is no node") {
		t.Errorf("%v", err)
	}
	leftBehind(t, o)
}

func TestCluster(t *testing.T) {
	rows := measure(t, tiny(t, "cluster"))
	has(t, rows, []int{1}, "a request and the appends of a turn p50", "ask of an agent at the door's node p50", "ask of an agent at another node p99")
	has(t, rows, []int{3}, "raw appends", "frames", "turns", "turn p50")
	has(t, rows, []int{64}, "leave: longest ask", "leave: until it has gone", "join: longest ask", "join: partitions that moved to it", "moved partition: longest ask")
	has(t, rows, []int{5}, "killed: until a partition is taken", "killed: until all are", "killed: until the next append of the first", "killed: until the next append p50", "killed: until the next append p99", "killed: until the last one's", "as many raw appends")
	for _, r := range rows {
		if r.Nodes != 2 || r.Replicas != 1 {
			t.Errorf("%s was measured with %d nodes and %d replicas", r.Figure, r.Nodes, r.Replicas)
		}
		if strings.HasSuffix(r.Figure, "not back in time") && r.Value != 0 {
			t.Errorf("%s: %v", r.Figure, r.Value)
		}
	}
}

// Of three servers each node has one of its own.
func TestClusterReplicated(t *testing.T) {
	o := tiny(t, "cluster")
	o.Nodes, o.Replicas, o.Only = []int{1}, []int{3}, []string{"asks"}
	has(t, measure(t, o), []int{1}, "a request and the appends of a turn p50", "ask of an agent at the door's node p50")
}

func TestClusterRefuses(t *testing.T) {
	for want, o := range map[string]Options{
		"no part \"sums\"": {Only: []string{"sums"}},
		"0 nodes":          {Nodes: []int{0}},
		"2 replicas":       {Replicas: []int{2}},
	} {
		o.Names, o.Dir = []string{"cluster"}, t.TempDir()
		if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		leftBehind(t, o)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	r := report{out: &out}
	err := errors.Join(
		r.add(Row{Figure: "turns", Agents: 512, Sync: "always", Value: 12345.6, Unit: "turns/s"}.of(24691.2, "raw")),
		r.add(Row{Figure: "turns", Agents: 1, Sync: "always", Value: 3.14159, Unit: "turns/s"}.of(0, "raw")),
		r.add(Row{Figure: "p50", Agents: 1, Sync: "always", Value: 31.4159, Unit: "ms"}),
		r.flush(), r.flush())
	const want = `
  sync always     unit  1 agent  512 agents
  turns        turns/s     3.14      12,346
    / raw            x                 0.50
  p50               ms     31.4            
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%swant%s", err, out.String(), want)
	}
}

func TestNames(t *testing.T) {
	for _, name := range Names() {
		if About(name) == "" {
			t.Errorf("%s has no description", name)
		}
	}
	err := Run(t.Context(), Options{Names: []string{"speed"}})
	if err == nil || !strings.Contains(err.Error(), "core, turns") {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestCanceled holds that a run that is stopped ends soon and leaves nothing.
func TestCanceled(t *testing.T) {
	embeddedtest.Long(t, "processes")
	for _, name := range Names() {
		o := tiny(t, name)
		o.Program, o.Window = reprise(t), time.Hour
		o.Idle = 1 << 20
		o.Events, o.Indexed = []int{1 << 20}, 1<<20
		o.Out = &bytes.Buffer{}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		start := time.Now()
		if err := Run(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 3*time.Minute {
			t.Errorf("%s took %v to end", name, took)
		}
		cancel()
		leftBehind(t, o)
	}
}
