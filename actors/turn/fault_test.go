package turn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
)

// fault is a mistake that somebody could make in the machine, as a change of
// one place of its source.
type fault struct {
	name     string
	file     string
	old, new string
}

// faults are what the simulation must be able to find. Those that break the
// actor around the machine have a table of their own, beside the actor.
var faults = []fault{
	{"lose the queue on clear", "stop.go",
		`d.emit(messages.InputDropped{Input: d.s.Queue[0].ID, By: "clear", Reason: reason})`, `d.s.Queue = d.s.Queue[1:]`},
	{"run a tool before its intent", "effects.go",
		`if c.Status != Executing {`, `if c.Status != Executing && c.Status != Requested {`},
	{"call a model while it waits to", "effects.go",
		`m != nil && m.underWay() {`, `m != nil {`},
	{"double a timer", "timers.go",
		`	d.emit(messages.TimerSet{`, "	d.emit(messages.TimerSet{Turn: d.s.Turn.ID, Timer: id, For: what, Call: call, At: stored(at)})\n	d.emit(messages.TimerSet{"},
	{"a timer outlives its turn", "stop.go",
		"	d.cancelTimers()\n", ""},
	{"count a retry as a step", "decide.go",
		`step, attempt = t.Steps, t.Model.Attempt+1`, `step, attempt = t.Steps+1, t.Model.Attempt+1`},
	{"one step more than allowed", "budget.go",
		`u.Steps+1 > m.MaxSteps`, `u.Steps > m.MaxSteps`},
	{"start a gated call ungranted", "evolve.go",
		`s.settle(ev.Call, Gated)`, `s.settle(ev.Call, Requested)`},
	{"start calls while paused", "outcomes.go",
		"	if t.Paused != \"\" {\n		return\n	}\n	if t.finish", "	if t.finish"},
	{"approve other arguments", "approve.go",
		`case hash != "" && hash !=`, `case hash == "-" && hash !=`},
	{"approve a call of another turn", "approve.go",
		`(turn == "" || turn == t.ID)`, `turn != "-"`},
	{"single nothing out that is remembered", "approve.go",
		`ok && !(r.Granted && singled)`, `ok && (!singled || singled)`},
	{"use a tool where none may be used", "outcomes.go",
		`case d.s.Turn.toolChoice == "none":`, `case d.s.Turn.toolChoice == "-":`},
	{"remember a denial as a grant", "evolve.go",
		`Remembered{Text: ev.Text}`, `Remembered{Granted: true}`},
	{"a decision outlives a clear", "evolve.go",
		`s.Remembered, s.Ended, s.done = nil, nil, nil`, `s.Ended, s.done = nil, nil`},
	{"leave siblings unsettled on abort", "stop.go",
		`case Requested, Gated:`, `case Gated:`},
	{"drop unseen joined inputs", "decide.go",
		"	d.requeue(\"its turn ended before a model had seen it\")\n", ""},
	{"requeue at the end of the queue", "evolve.go",
		"	at := 0\n", "	at := len(s.Queue)\n"},
	{"admit a joined input twice", "evolve.go",
		`without(t.Unseen, ev.Inputs...), nil, nil`, `t.Unseen, nil, nil`},
	{"take the result of an old attempt", "outcomes.go",
		` || c.Attempt != attempt || d.s.lost[call]`, ` || d.s.lost[call]`},
	{"spend no id", "evolve.go",
		`if id, ok := SpentBy(f); ok {`, `if id, ok := SpentBy(f); ok && f == nil {`},
	{"interrupt a later turn", "stop.go",
		`case only != "" && only != t.ID:`, `case only == "-" && only != t.ID:`},
	{"run once-tools again after a crash", "outcomes.go",
		`case "pure", "keyed":`, `case "pure", "keyed", "once":`},
	{"lose a lost call's reservation", "outcomes.go",
		"	d.settleUnknown(m)\n	if t.Model.Restarts", "	if t.Model.Restarts"},
	{"count a reservation beside the use", "evolve.go",
		`if ev.Unknown {`, `if ev.Unknown || ev.Tokens > 0 {`},
	{"count a failed attempt's use twice", "evolve.go",
		"		t.modelFailed(ev)\n", "		s.count(Used{Tokens: ev.Usage.Tokens()})\n		t.modelFailed(ev)\n"},
	{"force a tool for ever", "evolve.go",
		"		t.toolUsed = true\n", ""},
	{"ask hooks again without end", "hooks.go",
		`d.requestModel(o.Request, o.Seen)`, `d.request()`},
	{"hooks send each other in circles", "hooks.go",
		` && !asked`, ` && (asked || !asked)`},
	{"forget what a hook decided in a crash", "outcomes.go",
		"		case m.Due:\n			d.advance()", "		case m.Due:\n			d.request()"},
	{"start with the newest input", "decide.go",
		`d.start(d.s.Queue[0])`, `d.start(d.s.Queue[len(d.s.Queue)-1])`},
}

// faultSteps is within how many steps a fault must be found.
const faultSteps = 400_000

// TestFaultsFit checks that every fault can still be planted.
func TestFaultsFit(t *testing.T) {
	for _, f := range faults {
		source, err := os.ReadFile(f.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), f.old); n != 1 {
			t.Errorf("fault %q: %s has its place %d times, want once: mend the table of faults\n%s", f.name, f.file, n, f.old)
		}
	}
}

// found is how the simulation told of a fault.
type found struct {
	Seed, Steps, Acts int
	What              string
}

// TestHunt looks for the first life that breaks a promise. It runs in the
// binaries that TestFaults builds.
func TestHunt(t *testing.T) {
	if os.Getenv("REPRISE_HUNT") == "" {
		t.Skip("set REPRISE_HUNT to print the first life that breaks a promise")
	}
	guard(t)
	for seed, steps := 0, 0; steps < faultSteps; seed++ {
		l := life{seed: uint64(seed)}
		s, err := l.play()
		if err == nil {
			steps += s.steps
			continue
		}
		short, _ := shrink(l, err)
		raw, _ := json.Marshal(found{seed, steps + err.steps, short.left(), ruleOf(err)})
		fmt.Printf("found %s\n", raw)
		return
	}
}

// TestFaults plants each fault alone, in a copy of the source that only the
// compiler sees, and prints what the simulation needed to find it.
func TestFaults(t *testing.T) {
	if os.Getenv("REPRISE_FAULTS") == "" {
		t.Skip("takes a build for each fault: make sim, or set REPRISE_FAULTS")
	}
	if r, ok := hunt(t, fault{name: "none"}); ok {
		t.Fatalf("the simulation finds something without any fault, so that it tells nothing of faults: %+v", r)
	}
	rows, turns := make([]found, len(faults)), make(chan struct{}, 2) // two at once: others use the machine too
	t.Run("each", func(t *testing.T) {
		for i, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				turns <- struct{}{}
				defer func() { <-turns }()
				row, ok := hunt(t, f)
				if !ok {
					t.Fatalf("not found in %d steps", faultSteps)
				}
				rows[i] = row
			})
		}
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "room\tfault\tsteps\tseed\tactions\tfound as")
	for i, f := range faults {
		r := rows[i]
		fmt.Fprintf(w, "turn\t%s\t%d\t%d\t%d\t%s\n", f.name, r.Steps, r.Seed, r.Acts, r.What)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("steps and seed of the first life that tells, actions of its shortest form\n%s", b.String())
}

// hunt builds the tests with the fault in place, if it has one, and lets them
// look for it.
func hunt(t *testing.T, f fault) (r found, ok bool) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "faulty.test")
	args := []string{"test", "-c", "-o", binary}
	if f.file != "" {
		args = append(args, "-overlay", f.plant(t, dir))
	}
	build := exec.Command("go", append(args, ".")...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the fault does not compile: %v\n%s", err, out)
	}
	hunt := exec.Command(binary, "-test.run", "^TestHunt$", "-test.timeout", "2m")
	hunt.Env = append(os.Environ(), "REPRISE_HUNT=1", "GOMAXPROCS=1")
	out, err := hunt.CombinedOutput()
	if err != nil {
		t.Fatalf("the hunt broke off: %v\n%s", err, out)
	}
	_, line, ok := bytes.Cut(out, []byte("found "))
	if !ok {
		return r, false
	}
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r, true
}

// plant writes the changed source and the overlay that puts it in place.
func (f fault) plant(t *testing.T, dir string) (overlay string) {
	source, err := os.ReadFile(f.file)
	if err != nil {
		t.Fatal(err)
	}
	place, err := filepath.Abs(f.file)
	if err != nil {
		t.Fatal(err)
	}
	changed, overlay := filepath.Join(dir, f.file), filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {place: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{changed: bytes.Replace(source, []byte(f.old), []byte(f.new), 1), overlay: raw} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}
