package wire

import (
	"unicode/utf8"

	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/memory"
)

// PartSize is what a part of an answer takes beside its texts, as bytes of payload.
const PartSize = 256 / memory.Weight

// Size returns how many bytes the texts of a request take as JSON, in which a character may take
// six. The rest of the body takes less than [memory.Free].
func Size(r providers.Request) int {
	size := encoded(r.Instructions)
	for _, t := range r.Tools {
		size += encoded(t.Description) + len(t.Parameters)
	}
	for _, it := range r.Items {
		size += encoded(it.Arguments) + encoded(it.Output) + len(it.Raw)
		for _, p := range it.Content {
			size += encoded(p.Text) + encoded(p.ImageURL)
		}
	}
	return size
}

// encoded returns how many bytes a text takes in a JSON string, at most.
func encoded(text string) int {
	size := len(text)
	for _, c := range text {
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			size++
		case c < ' ':
			size += 5
		case c == utf8.RuneError:
			size += 2
		}
	}
	return size
}
