package actors_test

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

// fault is a mistake that somebody could make in the actor, as a change of one
// place of its source.
type fault struct {
	name     string
	file     string
	old, new string
}

// committing is where a frame is appended.
const committing = `m.tail, m.err = eventlog.Commit(ctx, log, entry, stalls(func(err error) { root.Send(self, stalled{f.ID, err}) }))`

// faults are what the simulation must be able to find. Those of the machine
// inside have a table of their own, beside the machine.
var faults = []fault{
	{"take over without a fence", "load.go",
		`case a.tail.Frame != "" && a.tail.Epoch < a.epoch:`, `case a.tail.Frame == "-":`},
	{"write over a conflict", "commit.go",
		committing, committing + `
			var lost *eventlog.ConflictError
			if errors.As(m.err, &lost) {
				entry.Expect = lost.Actual
				f.First, f.Prev, f.PrevDigest, f.Epoch = lost.Actual.Last+1, lost.Actual.Frame, lost.Actual.Digest, lost.Actual.Epoch
				entry.Bytes, _ = messages.EncodeFrame(entry.Agent, f)
				m.tail, m.err = log.Append(ctx, entry)
			}`},
	{"take an unknown outcome for a stored frame", "commit.go",
		committing, `_ = stalls
			if m.tail, m.err = log.Append(ctx, entry); m.err != nil && !errors.As(m.err, new(*eventlog.ConflictError)) {
				m.tail, m.err = entry.Tail(entry.Expect.Seq+1), nil
			}`},
	{"act before the append", "commit.go",
		"	a.busy = true\n", "	a.busy = true\n	a.act()\n"},
	{"answer before the append", "commit.go",
		`	a.flight = flight{frame: f, replies: a.repliesTo(f), sender: sender}`, "	a.flight = flight{frame: f, replies: a.repliesTo(f)}\n	a.answer(sender, answerOf(f))"},
	{"let a deposed owner's work run on", "failing.go",
		"	for _, cancel := range a.running {\n		cancel()\n	}\n", ""},
	{"let work run on that nobody awaits", "effects.go",
		"			cancel()\n			delete(a.running, e)\n", "			_ = cancel\n			delete(a.running, e)\n"},
	{"take a late result of cancelled work", "agent.go",
		`if _, listed := a.running[o.of]; !listed {`, `if a.broken != nil {`},
	{"work on after a takeover as if nothing was lost", "effects.go",
		`if a.recovering || a.broken != nil {`, `if a.broken != nil {`},
	{"forget to go on after a takeover", "load.go",
		"		a.waiting = append([]arrival{{message: goOn{}}}, a.waiting...)\n", ""},
	{"forget to go on after a failed append", "failing.go",
		"\"agent\", a.id.String(), \"error\", err)\n		a.leave(true)\n	}\n	if refusal", "\"agent\", a.id.String(), \"error\", err)\n		a.leave(false)\n	}\n	if refusal"},
	{"keep the state of an append that failed", "failing.go",
		"\"agent\", a.id.String(), \"error\", err)\n		a.leave(true)\n	}\n	if refusal", "\"agent\", a.id.String(), \"error\", err)\n		a.broken = nil\n	}\n	if refusal"},
	{"wait for an event before hooks are asked", "agent.go",
		"	a.act() // hooks may be asked now", "	// hooks may be asked now"},
	{"take what was to be asked again for the first answer", "load.go",
		"				ans = answerOf(rec.Frame)\n", "				ans = messages.Answer{N: rec.Frame.Last()}\n"},
	{"forget old ids", "index.go",
		"	(*x)[hashID(id.ID)] = id.N\n", ""},
	{"sleep with work to do", "agent.go",
		` || a.state.Open() {`, ` {`},
}

// faultActs is within how many acts a fault must be found.
const faultActs = 60_000

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
	Seed    uint64
	Acts    int // until the first life that tells
	Shortly int // acts that suffice
	What    string
}

// TestHunt looks for the first life that breaks a promise. It runs in the
// binaries that TestFaults builds.
func TestHunt(t *testing.T) {
	if os.Getenv("REPRISE_HUNT") == "" {
		t.Skip("set REPRISE_HUNT to print the first life that breaks a promise")
	}
	acts := 0
	for seed := uint64(0); acts < faultActs; seed++ {
		l := live(t, seed, plan(seed))
		acts += len(l.acts)
		if l.wrong == nil {
			continue
		}
		short := shrink(t, l)
		what, _, _ := strings.Cut(l.wrong[0], "\n")
		raw, err := json.Marshal(found{seed, acts, len(short.acts), what})
		if err != nil {
			t.Fatal(err)
		}
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
				var ok bool
				if rows[i], ok = hunt(t, f); !ok {
					t.Fatalf("not found in %d acts", faultActs)
				}
			})
		}
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "room\tfault\tacts\tseed\tsuffice\tfound as")
	for i, f := range faults {
		r := rows[i]
		fmt.Fprintf(w, "actors\t%s\t%d\t%d\t%d\t%.100s\n", f.name, r.Acts, r.Seed, r.Shortly, r.What)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("acts and seed of the first life that tells, acts of its shortest form\n%s", b.String())
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
	hunt := exec.Command(binary, "-test.run", "^TestHunt$", "-test.timeout", "5m")
	hunt.Env = append(os.Environ(), "REPRISE_HUNT=1", "GOMAXPROCS=2")
	out, err := hunt.CombinedOutput()
	_, line, ok := bytes.Cut(out, []byte("found "))
	if !ok {
		if err != nil {
			t.Fatalf("the hunt broke off: %v\n%.4000s", err, out)
		}
		return r, false
	}
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r, true
}

// plant writes the changed source, with what it needs of package errors, and the overlay that puts it in place.
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
	source = bytes.Replace(source, []byte(f.old), []byte(f.new), 1)
	if strings.Contains(f.new, "errors.") && !bytes.Contains(source, []byte(`"errors"`)) {
		source = bytes.Replace(source, []byte("import (\n"), []byte("import (\n\t\"errors\"\n"), 1)
	}
	for name, text := range map[string][]byte{changed: source, overlay: raw} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}
