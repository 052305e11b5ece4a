package process

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Tail keeps the end of what is written to it: Limit bytes. Not safe for concurrent use.
type Tail struct {
	Limit int
	buf   []byte
	cut   bool
}

// Write never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b[max(0, len(b)-t.Limit):]...)
	if over := len(t.buf) - t.Limit; over > 0 || len(b) > t.Limit {
		t.buf, t.cut = append([]byte(nil), t.buf[max(0, over):]...), true
	}
	return len(b), nil
}

// Text returns the end, marked as one if there was more.
func (t *Tail) Text() string {
	kept := t.buf
	for t.cut && len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:] // the rest of a character that was cut
	}
	text := strings.TrimSpace(Visible(kept))
	if t.cut {
		return "…" + text
	}
	return text
}

// Visible is b as valid UTF-8: a byte that is none is written as \xNN.
func Visible(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&s, `\x%02x`, b[0])
		} else {
			s.WriteRune(r)
		}
		b = b[n:]
	}
	return s.String()
}
