// Package faulttest plants mistakes in a package, one at a time, and lets the
// simulation that stands in its tests look for them: a simulation that does not
// find a mistake that somebody could make proves nothing.
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

// Fault is a mistake that somebody could make, as a change of one place of a
// source file beside the test.
type Fault struct {
	Name, File string
	Old, New   string
}

// Found is how a simulation told of a fault.
type Found struct {
	Seed uint64
	// Took is how many steps or acts were lived until the first life that tells,
	// Suffice how many acts its shortest form has.
	Took, Suffice int
	What          string
}

// Tell prints what a hunt has found, for [Faults] to read.
func (f Found) Tell(t testing.TB) {
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("found %s\n", raw)
}

// Hunting skips a hunt that nobody has begun: it runs in the binaries that
// [Faults] builds.
func Hunting(t testing.TB) {
	if os.Getenv("REPRISE_HUNT") == "" {
		t.Skip("set REPRISE_HUNT to print the first life that breaks a promise")
	}
}

// FaultsFit checks that every fault can still be planted.
func FaultsFit(t *testing.T, faults []Fault) {
	for _, f := range faults {
		source, err := os.ReadFile(f.File)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), f.Old); n != 1 {
			t.Errorf("fault %q: %s has its place %d times, want once: mend the table of faults\n%s", f.Name, f.File, n, f.Old)
		}
	}
}

// Faults plants each fault alone, in a copy of the source that only the compiler
// sees, lets the test TestHunt of the package look for it, and prints a table of
// what that needed: room names its first column, unit what is counted. Two hunts
// run at once, and each ends by itself. It is skipped unless REPRISE_FAULTS is set.
func Faults(t *testing.T, room, unit string, faults []Fault) {
	if os.Getenv("REPRISE_FAULTS") == "" {
		t.Skip("takes a build for each fault: make test-faults, or set REPRISE_FAULTS")
	}
	if r, ok := hunt(t, Fault{Name: "none"}); ok {
		t.Fatalf("the simulation finds something without any fault, so that it tells nothing of faults: %+v", r)
	}
	rows, turns := make([]Found, len(faults)), make(chan struct{}, 2) // others use the machine too
	t.Run("each", func(t *testing.T) {
		for i, f := range faults {
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				turns <- struct{}{}
				defer func() { <-turns }()
				row, ok := hunt(t, f)
				if !ok {
					t.Fatal("not found")
				}
				rows[i] = row
			})
		}
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "room\tfault\t%s\tseed\tsuffice\tfound as\n", unit)
	for i, f := range faults {
		if r := rows[i]; r.What != "" { // else nobody asked for it
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.100s\n", room, f.Name, r.Took, r.Seed, r.Suffice, r.What)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s until the first life that tells, its seed, acts of its shortest form\n%s", unit, b.String())
}

// hunt builds the tests with the fault in place, if it has one, and lets them
// look for it.
func hunt(t *testing.T, f Fault) (r Found, ok bool) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "faulty.test")
	args := []string{"test", "-c", "-o", binary}
	if f.File != "" {
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

// plant writes the changed source, with what it needs of package errors, and the
// overlay that puts it in place.
func (f Fault) plant(t *testing.T, dir string) (overlay string) {
	source, err := os.ReadFile(f.File)
	if err != nil {
		t.Fatal(err)
	}
	place, err := filepath.Abs(f.File)
	if err != nil {
		t.Fatal(err)
	}
	changed, overlay := filepath.Join(dir, filepath.Base(f.File)), filepath.Join(dir, "overlay.json")
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {place: changed}})
	if err != nil {
		t.Fatal(err)
	}
	source = bytes.Replace(source, []byte(f.Old), []byte(f.New), 1)
	if strings.Contains(f.New, "errors.") && !bytes.Contains(source, []byte(`"errors"`)) {
		source = bytes.Replace(source, []byte("import (\n"), []byte("import (\n\t\"errors\"\n"), 1)
	}
	for name, text := range map[string][]byte{changed: source, overlay: raw} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}
