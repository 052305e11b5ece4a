package cli

import (
	"strings"
	"testing"
)

// A text is shown as it is, wherever it is cut into writes.
func TestHarmlessOfParts(t *testing.T) {
	const text = "aé€😀\x1b\xff€\xe2\x82"
	want := safe(text)
	for cut := range len(text) {
		for next := cut; next <= len(text); next++ {
			var got strings.Builder
			h := &harmless{to: &got}
			for _, part := range []string{text[:cut], text[cut:next], text[next:]} {
				if n, err := h.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := h.end(); err != nil {
				t.Fatal(err)
			}
			if got.String() != want {
				t.Errorf("cut at %d and %d: got %q, want %q", cut, next, got.String(), want)
			}
		}
	}
}
