package cli

import (
	"io"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is a writer whose text is shown on a terminal by something else: a pager, or
// watch.
type screen struct {
	io.Writer
	file *os.File
}

// terminalOf returns the terminal that f is, or shows its text on; nil: none.
func terminalOf(f any) *os.File {
	switch f := f.(type) {
	case *screen:
		return f.file
	case *output:
		return terminalOf(f.Writer)
	case *os.File:
		if term.IsTerminal(int(f.Fd())) {
			return f
		}
	}
	return nil
}

// isTerminal reports whether a person may be at the other end of f.
func isTerminal(f any) bool { return terminalOf(f) != nil }

// terminalSize returns the columns and lines of the terminal behind f; 0: it is none, or its
// size is unknown.
func terminalSize(f any) (width, height int) {
	if file := terminalOf(f); file != nil {
		width, height, _ = term.GetSize(int(file.Fd())) // 0 where it is unknown
	}
	return width, height
}

// dumb reports whether the terminal is one whose cursor cannot be moved.
func dumb() bool {
	kind := os.Getenv("TERM")
	return kind == "dumb" || kind == "" && runtime.GOOS != "windows"
}

// colour wraps text for a terminal, unless NO_COLOR is set.
func colour(w io.Writer, code, text string) string {
	if code == "" || !isTerminal(w) || os.Getenv("NO_COLOR") != "" || dumb() {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (a *app) dim(w io.Writer, text string) string  { return colour(w, "2", text) }
func (a *app) bold(w io.Writer, text string) string { return colour(w, "1", text) }
func (a *app) red(w io.Writer, text string) string  { return colour(w, "31", text) }

// safe is text of several lines that cannot steer a terminal: control
// characters but newline and tab, and those that turn the direction of
// writing, are written as Go writes them in a string.
func safe(text string) string {
	if !strings.ContainsFunc(text, steers) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if steers(r) {
			b.WriteString(escaped(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f:
		return true
	}
	return false
}

func escaped(r rune) string {
	const digits = "0123456789abcdef"
	if r < 0x80 {
		return `\x` + string(digits[r>>4]) + string(digits[r&15])
	}
	return `\u` + string([]byte{digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15]})
}

// indented is text with every line but the first moved to the right.
func indented(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }
