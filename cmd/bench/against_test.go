package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
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
		fmt.Println("Measure\n\n  turns       turns\n  index       index")
		return nil
	}
	name, notes := filepath.Base(os.Args[0]), filepath.Join(filepath.Dir(os.Args[0]), "notes")
	if slices.Contains(args, "index") {
		return interrupted(notes, args[len(args)-1])
	}
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

// standIns makes two programs in a folder and returns what compares them.
func standIns(t *testing.T) (Options, Versus) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := Options{Program: filepath.Join(dir, "new")}
	v := Versus{Old: filepath.Join(dir, "old"), Names: []string{"turns"}, Pairs: 3}
	if err := errors.Join(os.Symlink(self, v.Old), os.Symlink(self, o.Program)); err != nil {
		t.Fatal(err)
	}
	return o, v
}

func TestAgainst(t *testing.T) {
	o, v := standIns(t)
	v.Flags = []string{"--agents=8"}
	var out bytes.Buffer
	o.Out = &out
	if err := Against(t.Context(), o, v); err != nil {
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
	o, v := standIns(t)
	v.Names = []string{"turns", "serve"}
	o.Out = &bytes.Buffer{}
	err := Against(t.Context(), o, v)
	if err == nil || !strings.Contains(err.Error(), `old has no benchmark "serve"`) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(v.Old), "notes")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was measured: %v", err)
	}
}

// TestAgainstCanceled holds that a comparison which is stopped lets the program that
// measures clean up behind itself.
func TestAgainstCanceled(t *testing.T) {
	o, v := standIns(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	v.Names, v.Flags, o.Out = []string{"index"}, []string{l.Addr().String()}, &bytes.Buffer{}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			cancel() // it measures now
			_ = c.Close()
		}
	}()
	if err := Against(ctx, o, v); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if notes, err := os.ReadFile(filepath.Join(filepath.Dir(v.Old), "notes")); string(notes) != "cleaned up" {
		t.Errorf("the program had no time to clean up: %q, %v", notes, err)
	}
}
