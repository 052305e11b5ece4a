package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// run measures figures for a moment and returns their rows; nothing may be left behind.
func run(t *testing.T, ctx context.Context, window time.Duration, figures ...Figure) ([]Row, error) {
	t.Helper()
	var out bytes.Buffer
	o := Options{Dir: t.TempDir(), Sync: []string{"relaxed"}, Agents: []int{1, 3}, Window: window, JSON: true, Out: &out}
	failed := Run(ctx, o, figures...)
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	var rows []Row
	for lines := json.NewDecoder(&out); lines.More(); {
		var row Row
		if err := lines.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows, failed
}

func TestFigures(t *testing.T) {
	rows, err := run(t, t.Context(), 60*time.Millisecond, Turns, Inputs)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, r := range rows[1:] { // the first is of the disk
		got[r.Figure] += r.Agents
		if r.Figure == "" || r.Unit == "" || r.Sync != "relaxed" || r.Value < 0 || r.Value > 0 && (r.Ratio > 0) != (r.RatioTo != "") {
			t.Errorf("the row is not whole: %+v", r)
		}
		if r.Figure == "writes per turn" && r.Value != PerTurn {
			t.Errorf("a turn with %d agents took %v writes, want %d", r.Agents, r.Value, PerTurn)
		}
	}
	for _, f := range []string{
		"raw appends", "frames", "turns", "writes per turn", "raw append p50", "turn p50", "turn p99", "CPU per 1,000 turns", "CPU per 4,000 raw appends",
		"objects allocated per turn", "bytes allocated per turn", "goroutine runs per turn",
		"input stream alone", "inputs, a turn each", "input stream alone p50", "input to turn started p50", "input to turn started p99",
	} {
		if got[f] != 1+3 {
			t.Errorf("%s is not there for 1 and 3 agents", f)
		}
	}
}

// TestCanceled holds that a run that is stopped, also while a node starts, ends soon and leaves
// nothing.
func TestCanceled(t *testing.T) {
	for _, f := range []Figure{Turns, Inputs} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := run(t, ctx, time.Hour, f); ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got the error %v, want that of a context", f.Name, err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	met := Figure{Name: "met", Run: func(*Lab, context.Context) error {
		cancel()
		return errors.New("the server was killed")
	}}
	if _, err := run(t, ctx, time.Hour, met); !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v, want that of the context", err)
	}
}

// TestMeter checks the counts of a window against work of a known size.
func TestMeter(t *testing.T) {
	const objects, size, runs = 1000, 1 << 10, 10_000
	used := Meter()
	kept := make([][]byte, objects)
	for i := range kept {
		kept[i] = make([]byte, size)
	}
	for range runs {
		runtime.Gosched()
	}
	_, c := used()
	runtime.KeepAlive(kept)
	if c.Objects < objects || c.Bytes < objects*size {
		t.Errorf("%d objects and %d bytes were counted, want %d and %d at least", c.Objects, c.Bytes, objects, objects*size)
	}
	if c.Runs < runs-2*latencySample || c.Runs > 2*runs {
		t.Errorf("%d runs were counted, want about %d", c.Runs, runs)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	r := NewReport(&out, false)
	err := errors.Join(
		r.Add(Row{Figure: "turns", Agents: 512, Sync: "always", Value: 12345.6, Unit: "turns/s"}.Of(24691.2, "raw")),
		r.Add(Row{Figure: "turns", Agents: 1, Sync: "always", Value: 3.14159, Unit: "turns/s"}.Of(0, "raw")),
		r.Add(Row{Figure: "p50", Agents: 1, Sync: "always", Value: 31.4159, Unit: "ms"}),
		r.Flush(), r.Flush())
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

func TestChoose(t *testing.T) {
	all := []Figure{Turns, Inputs}
	if got, err := new(Options).Choose(all, []string{"inputs"}); err != nil || len(got) != 1 || got[0].Name != "inputs" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := new(Options).Choose(all, []string{"speed"}); err == nil || !strings.Contains(err.Error(), "turns, inputs") {
		t.Errorf("an unknown name: %v", err)
	}
	for _, o := range []Options{{Agents: []int{1, 0}}, {Agents: []int{-5}}, {Agents: []int{most + 1}}, {Window: -time.Second}} {
		if _, err := o.Choose(all, nil); err == nil {
			t.Errorf("%v agents, window %v: no error", o.Agents, o.Window)
		}
	}
}
