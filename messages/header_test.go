package messages_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "two\r\nlines\ttab\x00\x7f": "two  lines tab  ", "bad \xff byte": "bad  byte", "žluťoučký": "žluťoučký",
	} {
		if got := messages.OneLine(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if long := messages.OneLine(strings.Repeat("ž", messages.MaxMessage)); len(long) > messages.MaxMessage || !utf8.ValidString(long) {
		t.Errorf("long text: got %d bytes, want at most %d of valid UTF-8", len(long), messages.MaxMessage)
	}
}
