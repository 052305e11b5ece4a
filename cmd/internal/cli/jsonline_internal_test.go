package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestJSONLine holds that a line of JSON cannot steer a terminal and stays the same JSON, and that other
// text stays as it is.
func TestJSONLine(t *testing.T) {
	for _, text := range []string{"plain", "Grüße 東京 \\ \"x\" é 🙂\u00a0\u2028", "a\u202eb\\\u009b31m\u007f\u2066\u200f", "\x1b[2J\t\n"} {
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		plain := !strings.ContainsFunc(string(b), steers)
		line := string(jsonLine(b))
		var got string
		if err := json.Unmarshal([]byte(line), &got); err != nil || got != text {
			t.Errorf("%q: got %q, error %v", text, got, err)
		}
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), steers) || plain && line != string(b)+"\n" {
			t.Errorf("%q: got the line %q", text, line)
		}
	}
	if line := jsonLine([]byte("\"\x9b31m\"")); !utf8.Valid(line) || !json.Valid(line) {
		t.Errorf("got %q", line)
	}
}
