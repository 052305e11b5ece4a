package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// standIn is a program that TestAgainst compares. It notes its name beside itself
// and prints rows that depend on how often it was asked: the new one is 1.5 times
// as fast, but for a slow start.
func standIn(args []string) error {
	if slices.Contains(args, "--help") {
		fmt.Println("Measure\n\n  turns       turns\n  views       views")
		return nil
	}
	name, notes := filepath.Base(os.Args[0]), filepath.Join(filepath.Dir(os.Args[0]), "notes")
	before, _ := os.ReadFile(notes) // the first one finds none
	value := float64(10 * (1 + strings.Count(string(before), name)))
	if name == "new" && value > 10 {
		value *= 1.5
	}
	rows := []Row{
		{Figure: "fsync", Value: 1, Unit: "ms", Agents: 1},
		Row{Figure: "turns", Agents: 8, Sync: "relaxed", Value: value, Unit: "turns/s"}.of(2*value, "loop"),
		{Figure: "only " + name, Agents: 8, Sync: "relaxed", Value: 7, Unit: "ms"},
	}
	var err error
	for out := json.NewEncoder(os.Stdout); len(rows) > 0; rows = rows[1:] {
		err = errors.Join(err, out.Encode(rows[0]))
	}
	return errors.Join(err, os.WriteFile(notes, fmt.Appendf(before, "%s %s\n", name, strings.Join(args, " ")), 0o600))
}

// standIns makes two programs in a folder and returns what compares them.
func standIns(t *testing.T) Versus {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	v := Versus{Old: filepath.Join(dir, "old"), New: filepath.Join(dir, "new"), Names: []string{"turns"}, Pairs: 3}
	if err := errors.Join(os.Symlink(self, v.Old), os.Symlink(self, v.New)); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAgainst(t *testing.T) {
	v := standIns(t)
	v.Flags = []string{"--agents=8"}
	var out bytes.Buffer
	if err := Against(t.Context(), Options{Out: &out}, v); err != nil {
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
	notes, err := os.ReadFile(filepath.Join(filepath.Dir(v.Old), "notes"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.ReplaceAll(string(notes), " turns -o json --agents=8", "")
	if order := strings.Join(strings.Fields(lines), " "); order != "old new new old old new" {
		t.Errorf("the programs ran in the order %q", order)
	}
}

// TestAgainstUnknown holds that a figure which one build does not have is named
// before anything is measured.
func TestAgainstUnknown(t *testing.T) {
	v := standIns(t)
	v.Names = []string{"turns", "serve"}
	err := Against(t.Context(), Options{Out: &bytes.Buffer{}}, v)
	if err == nil || !strings.Contains(err.Error(), `old has no benchmark "serve"`) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(v.Old), "notes")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was measured: %v", err)
	}
}
