package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
)

// sampleRows is a table whose cells are of every kind: addresses, prose, wide characters and none.
var sampleRows = [][]string{
	{"AGENT", "PHASE", "ARGUMENTS", "OUTCOME", "OUTPUT"},
	{"support/ticket-42", "running", `{"order":7,"customer":"Ann","reason":"it was broken"}`, "completed", "Paid 9900 cents back for order 7."},
	{"team/t1/child-of-a-long-call-1", "paused", `{"名前":"日本語のとても長い引数です"}`, "waiting", ""},
}

func TestTableFits(t *testing.T) {
	const want = `AGENT                           PHASE    ARGUMENTS      OUTCOME    OUTPUT
support/ticket-42               running  {"order":7,"…  completed  Paid 9900 ce…
team/t1/child-of-a-long-call-1  paused   {"名前":"日…   waiting    
`
	var b bytes.Buffer
	if writeColumns(&b, sampleRows, 80); b.String() != want {
		t.Errorf("width 80:\n%s\nwant\n%s", b.String(), want)
	}
	for width := 72; width < 160; width++ {
		b.Reset()
		writeColumns(&b, sampleRows, width)
		for line := range strings.Lines(b.String()) {
			if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w > width {
				t.Errorf("width %d: a line of %d columns: %s", width, w, line)
			}
		}
	}
}

// TestTableKeeps holds that what is typed next, times and numbers are never cut.
func TestTableKeeps(t *testing.T) {
	rows := [][]string{
		{"AGENT", "TURN", "CALL", "TOOL", "ARGUMENTS", "SINCE", "EXPIRES"},
		{"support/ticket-42", "t4", "call_10890b43423fd3494ace", "refund", `{"order":7,"customer":"Ann"}`, "2026-11-27 03:26:27 UTC", "never"},
	}
	for width := 1; width < 160; width++ {
		var b bytes.Buffer
		writeColumns(&b, rows, width)
		for i, cell := range rows[1] {
			if rows[0][i] != "ARGUMENTS" && !strings.Contains(b.String(), cell) {
				t.Fatalf("width %d: %s is cut:\n%s", width, cell, b.String())
			}
		}
	}
}

func TestTableWhole(t *testing.T) {
	var b bytes.Buffer
	writeColumns(&b, sampleRows, 0)
	for _, row := range sampleRows {
		for _, cell := range row {
			if !strings.Contains(b.String(), cell) {
				t.Errorf("%q is missing in\n%s", cell, b.String())
			}
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("colour where there is no terminal")
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 11, 22, 19, 45, 22, 0, time.FixedZone("EST", -5*3600))
	a := &app{out: new(bytes.Buffer)}
	for name, text := range map[string]string{"time": a.time(at), "age": a.age(at)} {
		if text != "2026-11-23 00:45:22" {
			t.Errorf("%s without a terminal: %s", name, text)
		}
	}
	const scrubbed = "each stream was read to its end on 2026-11-23 00:45:22 or later"
	if got := a.timed(scrubbed); got != scrubbed {
		t.Errorf("without a terminal: %s", got)
	}
	a.out, a.utc = &screen{file: os.Stdout}, true
	if got := a.timed(scrubbed); !strings.HasSuffix(got, "2026-11-23 00:45:22 UTC or later") {
		t.Errorf("on a terminal: %s", got)
	}
	a.out = &screen{file: nil}
	if a.time(time.Time{}) != "" || a.age(time.Time{}) != "" {
		t.Error("no time is shown as one")
	}
}

func TestFirstLines(t *testing.T) {
	const text = "a\nb\nc\nd\n"
	for n, want := range map[int]string{0: text, 4: text, 5: text, 3: "a\nb\n… and 2 more lines\n"} {
		if got := firstLines(text, n); got != want {
			t.Errorf("%d lines: %q, want %q", n, got, want)
		}
	}
}
