// Package faulttest plants faults in a package, one at a time, and lets the
// simulation among the package's tests search for each. A simulation that misses a
// plausible mistake proves little.
//
// A test of the package names its faults in a table of [Fault], checks with
// [FaultsFit] that each can still be planted, and plants them with [Faults]. Its
// test TestHunt runs the simulation until a rule is broken and prints [Found].
package faulttest

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

// Fault is a plausible mistake: a change of one place in one function.
type Fault struct {
	// Name is what goes wrong, in plain words. It is also the name of the subtest.
	Name string
	// Dir is the folder of the function's package, relative to the test. Empty means
	// the package of the test.
	Dir string
	// Func is the function that is changed: newState, State.Open or
	// (*decision).advance. It may be in any file of the package, and the pointer of its
	// receiver does not matter.
	Func string
	// Old is Go code that occurs once in the function: statements, an expression, a
	// case, an element of a literal. Its tokens are compared with those of the function, so
	// that spaces, line breaks and comments do not matter.
	Old string
	// New replaces Old. A standard package that it needs is imported.
	New string
}

// Found is what a simulation reports about a fault that it has found.
type Found struct {
	// Seed is the seed of the first run that broke a rule.
	Seed uint64
	// Took is how many steps or acts were simulated until then.
	Took int
	// Shortest is how many acts the shortest form of that run has.
	Shortest int
	// What is the rule that was broken.
	What string
}

// Print prints the result of a hunt for [Faults] to read.
func (f Found) Print(t testing.TB) {
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("found %s\n", raw)
}

// Hunting skips the test unless [Faults] or the caller asked for a hunt.
func Hunting(t testing.TB) {
	if os.Getenv("REPRISE_HUNT") == "" {
		t.Skip("set REPRISE_HUNT to print the first run that breaks a rule")
	}
}

// FaultsFit checks that every fault can be planted and that the changed file is
// still Go. It compiles nothing.
func FaultsFit(t *testing.T, faults []Fault) {
	packages := make(map[string]*source)
	for _, f := range faults {
		s := packages[f.Dir]
		if s == nil {
			s = readSource(t, f.Dir)
			packages[f.Dir] = s
		}
		if _, err := s.plant(f); err != nil {
			t.Errorf("fault %q: %v", f.Name, err)
		}
	}
}

// Faults plants each fault alone, in a copy of the source that only the compiler
// reads, lets the test TestHunt of the package search for it, and prints a table of
// the results. pkg is the first column of the table, unit what Found.Took counts. Two
// hunts run at once. Faults is skipped unless REPRISE_FAULTS is set.
func Faults(t *testing.T, pkg, unit string, faults []Fault) {
	if os.Getenv("REPRISE_FAULTS") == "" {
		t.Skip("takes a build for each fault: make test-faults, or set REPRISE_FAULTS")
	}
	if r, ok := hunt(t, nil); ok {
		t.Fatalf("got %+v without a fault, want no rule broken", r)
	}
	rows, slots := make([]Found, len(faults)), make(chan struct{}, 2) // the machine is shared
	t.Run("each", func(t *testing.T) {
		for i := range faults {
			t.Run(faults[i].Name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				row, ok := hunt(t, &faults[i])
				if !ok {
					t.Fatal("the simulation did not find the fault")
				}
				rows[i] = row
			})
		}
	})
	report(t, pkg, unit, faults, rows)
}

// report logs the table of what was found.
func report(t *testing.T, pkg, unit string, faults []Fault, rows []Found) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "package\tfault\t%s\tseed\tshortest\tfound as\n", unit)
	for i, f := range faults {
		if r := rows[i]; r.What != "" { // empty: not found, or not selected by -run
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.100s\n", pkg, f.Name, r.Took, r.Seed, r.Shortest, r.What)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s until the first run that breaks a rule, its seed, acts of its shortest form\n%s", unit, b.String())
}

// hunt builds the tests with fault f, or with none, and lets them search for it.
func hunt(t *testing.T, f *Fault) (r Found, ok bool) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "faulty.test")
	args := []string{"test", "-c", "-o", binary}
	if f != nil {
		args = append(args, "-overlay", overlay(t, *f, dir))
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
			t.Fatalf("the hunt failed: %v\n%.4000s", err, out)
		}
		return r, false
	}
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r, true
}

// overlay writes the changed file and the overlay for the go command that puts it in
// place, and returns the path of the overlay.
func overlay(t *testing.T, f Fault, dir string) (path string) {
	c, err := readSource(t, f.Dir).plant(f)
	if err != nil {
		t.Fatal(err)
	}
	original, err := filepath.Abs(c.path)
	if err != nil {
		t.Fatal(err)
	}
	changed, path := filepath.Join(dir, filepath.Base(c.path)), filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{changed: c.text, path: raw} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// readSource reads the package in a folder relative to the test.
func readSource(t *testing.T, dir string) *source {
	t.Helper()
	s, err := openSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
