package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

var update = cli.Update

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

// resize gives the terminal another size.
func (d *debugger) resize(width, height int) {
	d.t.Helper()
	d.shown.Resize(width, height)
	size := [2]uint32{uint32(height) | uint32(width)<<16}
	ioctl(d.t, d.screen, syscall.TIOCSWINSZ, &size[0])
}

// until reads until the screen has all texts.
func (d *debugger) until(texts ...string) {
	d.t.Helper()
	d.bound()
	for {
		missing := ""
		for _, text := range texts {
			if !strings.Contains(d.shown.String(), text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if err := d.more(); err != nil {
			d.t.Fatalf("the screen did not show %q: %v\n%s", missing, err, d.shown.String())
		}
	}
}

// more reads what comes next.
func (d *debugger) more() error {
	buffer := make([]byte, 4096)
	n, err := d.screen.Read(buffer)
	d.said += string(buffer[:n])
	_, _ = d.shown.Write(buffer[:n])
	return err
}

// Times, durations, bars and names differ from run to run.
var varies = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d(T[\d:.]+Z| \d\d:\d\d:\d\d\.\d{3} [A-Z]+)`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "hh:mm:ss.mmm"},
	{regexp.MustCompile(`"seq": \d+`), `"seq": SEQ`},
	{regexp.MustCompile(`01[0-9A-Z]{24}`), "FRAME"},
	{regexp.MustCompile(`[·█░│]{16}`), "BAR-------------"},
	{regexp.MustCompile(` +\d+(\.\d+)?(µs|ms|s)(…?)( |$)`), " TOOK$3 "},
	{regexp.MustCompile(`call_[0-9a-f]+`), "CALL"},
	{regexp.MustCompile(`[0-9a-f]{40,}`), "HASH"},
}

// masked returns the screen without what varies.
func (d *debugger) masked() string {
	screen := d.shown.String()
	for _, v := range varies {
		screen = v.pattern.ReplaceAllString(screen, v.with)
	}
	var lines []string
	for line := range strings.Lines(screen) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}

// golden reads until the screen has all texts, and is that of a file.
func (d *debugger) golden(name string, texts ...string) {
	d.t.Helper()
	d.until(texts...)
	path := filepath.Join("testdata", "replay", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(d.masked()), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.screen.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		d.t.Fatal(err)
	}
	for got := d.masked(); got != string(want); got = d.masked() { // the rest of it may come
		if err := d.more(); err != nil {
			d.t.Fatalf("screen %s: %v\ngot\n%swant\n%s", name, err, got, want)
		}
	}
}

// TestDebugger walks through an agent that pays after an approval, while that happens.
func TestDebugger(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "TERM=xterm-256color", "TZ=UTC")
	w.dev()
	w.run("ask", "support/a", "Refund 9900 cents for order 7").exits(3)
	d := w.debug("support/a")
	d.golden("paused", "7 of 7 rows", "paused (approval)", "waits for approval")
	call := w.run("approvals", "support/a", "-o", "json").exits(0).objects()[0]["call"].(string)
	w.run("approve", "support/a", call).exits(0)
	d.until("turn t4  completed", "refund says: Paid", "7 of 8 rows", "1 new below")
	d.types("G6")
	d.until("8 of 8 rows")
	d.types(":6\r2")
	d.golden("history", "event 6", "call call_", "5 of 8 rows")
	d.types("4")
	d.until("instructions", "yes, the hash that was recorded", "tool          refund")
	d.types("5/refund completed\r")
	d.golden("event", `"tool": "refund"`, "6 of 8 rows")
	d.types("q")
	d.exits(0)
	if found := regexp.MustCompile(`\x1b\[(\d+;)*[34]\d(;\d+)*m`).FindString(d.said); found != "" { // NO_COLOR is set
		t.Errorf("a colour was written: %q", found)
	}
}

// TestDebuggerOnBadGround opens the debugger where there is little to show, and less room.
func TestDebuggerOnBadGround(t *testing.T) {
	w := newWorld(t)
	w.env = append(w.env, "TERM=xterm-256color", "TZ=UTC")
	node := w.dev()
	none := w.onTerminal("replay", "assistant/none")
	none.sees("assistant/none does not exist")
	none.exits(1)
	w.feed("say \x1b]0;owned\x07\x1b[2J \u202ereversed", "ask", "parrot/p", "-").exits(0)
	for _, args := range [][]string{{"TERM=dumb"}, {"TERM=xterm", "--plain"}, {"TERM=xterm", "--wide"}} {
		lines := *w
		lines.env = append(slices.Clone(w.env), args[0])
		plain := lines.onTerminal(append([]string{"replay", "parrot/p", "--no-pager"}, args[1:]...)...)
		plain.sees("turn t4")
		plain.exits(0)
	}
	d := w.debug("parrot/p")
	d.until("5 of 5 rows", `\x1b]0;owned\a\x1b[2J \u202ereversed`)
	d.resize(40, 12)
	d.golden("narrow", "parrot/p  5 of 5 rows", "   5   model")
	d.resize(200, 24)
	node.end(syscall.SIGTERM)
	d.until("no new rows come: ")
	d.types("q")
	d.exits(0)
	if i := strings.Index(d.said, "owned\x07"); i >= 0 {
		t.Errorf("a text has set the title: %q", d.said[i:])
	}
}
