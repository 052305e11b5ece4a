package cli

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// jsonLine returns a JSON text as a line. Characters that could steer a terminal are escaped in it, as
// steers has them; any other text has the same bytes.
func jsonLine(text []byte) []byte {
	if !bytes.ContainsFunc(text, steers) && utf8.Valid(text) {
		return append(text, '\n')
	}
	var line bytes.Buffer
	for _, r := range string(text) { // only strings can hold such characters
		if steers(r) {
			fmt.Fprintf(&line, `\u%04x`, r)
		} else {
			line.WriteRune(r)
		}
	}
	line.WriteByte('\n')
	return line.Bytes()
}
