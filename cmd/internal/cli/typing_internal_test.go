package cli

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pieces reads text in pieces of at most n bytes.
type pieces struct {
	text string
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.n)], p.text)
	p.text = p.text[n:]
	return n, nil
}

// TestTyped holds what the editor is given, however a terminal's bytes come in pieces.
func TestTyped(t *testing.T) {
	long := strings.Repeat("a line that is long\n", 100)
	for in, want := range map[string][2]string{ // what the editor gets, and the input of its line
		"plain\r":         {"plain\r", "plain"},
		"日本語\r":           {"日本語\r", "日本語"},
		"\x1b[A\x1b[3~\r": {"\x1b[A\x1b[3~\r", ""},
		"see \x1b[200~a\r\n\tb\rc\n\n\x1b[201~!\r":  {"see a␤␉b␤c!\r", "see a\n\tb\nc!"},
		"\x1b[200~\x1b[31mred\x07\x1b[201~\r":       {"[31mred\r", "[31mred"},
		"a\x1b\rb\r":                                {"a␤b\r", "a\nb"},
		"wrong\x03":                                 {"wrong\x05\x15", ""},
		"why: \x1b[200~" + long + "\x1b[201~ and\r": {"why: [paste 1, 100 lines] and\r", "why: " + strings.TrimSuffix(long, "\n") + " and"},
		"\x1b[200~x\x1b[201~\x1b[200~y\x1b[201~\r":  {"xy\r", "xy"},
	} {
		for n := 1; n <= 20; n++ {
			typed := &typed{from: &pieces{in, n}}
			got, err := io.ReadAll(bufio.NewReader(typed))
			if err != nil || string(got) != want[0] {
				t.Errorf("%q in pieces of %d: %q, %v, want %q", in, n, got, err, want[0])
			}
			if line, isLine := strings.CutSuffix(string(got), "\r"); isLine && want[1] != "" && typed.whole(line) != want[1] {
				t.Errorf("%q: the input is %q, want %q", in, typed.whole(line), want[1])
			}
		}
	}
}

// TestPasteWithoutEnd holds that Ctrl-C ends a paste whose end does not come.
func TestPasteWithoutEnd(t *testing.T) {
	typed := &typed{from: io.MultiReader(strings.NewReader("a\x1b[200~lost"), strings.NewReader("\x03"), strings.NewReader("b\r"))}
	if got, err := io.ReadAll(typed); err != nil || string(got) != "a"+toEndAndClear+"b\r" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPast(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	p := readPast()
	for _, line := range []string{"one", "", "two", "two", "three␤four"} {
		p.remember(line)
	}
	p.save()
	if p = readPast(); p.Len() != 3 || p.At(0) != "three␤four" || p.At(2) != "one" {
		t.Errorf("the history is %q", p.lines)
	}
	if info, err := os.Stat(p.file); err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(p.file, filepath.Clean(home)) {
		t.Errorf("%s: %v, %v", p.file, info, err)
	}
	for range 2 * mostPast {
		p.remember("again")
		p.remember("and again")
	}
	if p.Len() != mostPast {
		t.Errorf("%d lines are kept", p.Len())
	}
}
