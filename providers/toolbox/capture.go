package toolbox

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// capture keeps what is written up to a limit, and while there is room for it. The rest
// is dropped, and stop is called once.
type capture struct {
	buf   bytes.Buffer
	limit int
	room  func(n int) error // waits until there is room for n more bytes
	err   error             // why something was dropped
	stop  func(error)
}

// Write never fails, so that the writer is not stopped by a broken pipe
// before it is killed.
func (c *capture) Write(b []byte) (int, error) {
	if c.err != nil {
		return len(b), nil
	}
	keep := min(len(b), c.limit-c.buf.Len())
	if c.err = c.room(keep); c.err == nil {
		c.buf.Write(b[:keep])
		if keep < len(b) {
			c.err = errOutput
		}
	}
	if c.err != nil {
		c.stop(c.err)
	}
	return len(b), nil
}

// tail keeps the end of what is written.
type tail struct {
	buf   []byte
	limit int
	cut   bool
}

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b[max(0, len(b)-t.limit):]...)
	if over := len(t.buf) - t.limit; over > 0 || len(b) > t.limit {
		t.buf, t.cut = append([]byte(nil), t.buf[max(0, over):]...), true
	}
	return len(b), nil
}

// text is the end, marked as one if there was more.
func (t *tail) text() string {
	kept := t.buf
	for t.cut && len(kept) > 0 && !utf8.RuneStart(kept[0]) {
		kept = kept[1:] // the rest of a character that was cut
	}
	text := strings.TrimSpace(visible(kept))
	if t.cut {
		return "…" + text
	}
	return text
}

// visible is b as valid UTF-8: a byte that is none is written as \xNN.
func visible(b []byte) string {
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
