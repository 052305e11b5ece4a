package cli_test

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

var update = flag.Bool("update", false, "rewrite the golden screens of testdata/replay; read the diff")

// debugger is `reprise replay` on a terminal whose screen can be read.
type debugger struct {
	*terminal
	shown *vt.SafeEmulator
}

// debug opens the debugger on a terminal of 200 columns.
func (w *world) debug(args ...string) *debugger {
	w.t.Helper()
	d := &debugger{w.onTerminal(append([]string{"replay"}, args...)...), vt.NewSafeEmulator(200, 24)}
	go func() { _, _ = io.Copy(d.screen, d.shown) }() // what a terminal answers when it is asked
	w.t.Cleanup(func() { _ = d.shown.Close() })
	return d
}

// until reads until the screen has all texts, and returns it.
func (d *debugger) until(texts ...string) string {
	d.t.Helper()
	d.bound()
	buffer := make([]byte, 4096)
	for {
		screen, missing := d.shown.String(), ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return screen
		}
		n, err := d.screen.Read(buffer)
		if err != nil {
			d.t.Fatalf("the screen did not show %q: %v\n%s", missing, err, screen)
		}
		_, _ = d.shown.Write(buffer[:n])
	}
}

// Times, durations, bars and names differ from run to run.
var varies = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "hh:mm:ss.mmm"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`[·█░│]{16}`), "BAR-------------"},
	{regexp.MustCompile(` +\d+(\.\d+)?(µs|ms|s)(…?)( |$)`), " TOOK$3 "},
	{regexp.MustCompile(`call_[0-9a-f]+`), "CALL"},
	{regexp.MustCompile(`[0-9a-f]{40,}`), "HASH"},
}

// golden compares a screen with a file.
func (d *debugger) golden(name, screen string) {
	d.t.Helper()
	for _, v := range varies {
		screen = v.pattern.ReplaceAllString(screen, v.with)
	}
	var lines []string
	for line := range strings.Lines(screen) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	screen = strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "replay", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(screen), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || screen != string(want) {
		d.t.Errorf("screen %s: %v\ngot\n%swant\n%s", name, err, screen, want)
	}
}

// TestDebugger walks through an agent that has paid after an approval.
func TestDebugger(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "TERM=xterm-256color", "TZ=UTC")
	w.dev()
	w.run("ask", "support/a", "Refund 9900 cents for order 7").exits(3)
	d := w.debug("support/a")
	d.golden("paused", d.until("waiting", "approval.requested"))
}
