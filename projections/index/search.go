package index

import (
	"slices"
	"strings"
	"unicode"

	"github.com/reprise-dev/reprise/messages"
)

// The bounds of a search.
const (
	// MinPrefix is how many bytes the beginning of an id must have to be found by it.
	MinPrefix = 6
	// MaxSearch is the most bytes of a search.
	MaxSearch = 1 << 10
	// maxTerms is how many words and phrases it may have.
	maxTerms = 64
)

// Search is what is searched for. [ReadSearch] makes one.
type Search struct {
	id    string // what an id or key must be, or begin with
	words string // an expression of FTS5; empty: there are no words
}

// ReadSearch reads what a person writes: words, which must all be in one text, phrases in
// double quotes, whose words must follow one another, or an id. A word with punctuation in it,
// such as pay:7-abc, is a phrase. The error is for that person.
func ReadSearch(text string) (Search, error) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if text == "" {
		return Search{}, messages.Refuse(messages.BadInput, "text is empty: write words, or an id such as that of a call")
	}
	if len(text) > MaxSearch {
		return Search{}, messages.Refuse(messages.BadInput, "text has %d bytes: a search has at most %d", len(text), MaxSearch)
	}
	var terms []string
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 { // in quotes
			terms = append(terms, part)
		} else {
			terms = append(terms, strings.Fields(part)...)
		}
	}
	terms = slices.DeleteFunc(terms, func(term string) bool { return !strings.ContainsFunc(term, inWord) })
	switch {
	case len(terms) == 0:
		return Search{}, messages.Refuse(messages.BadInput, "text %q has no word in it: write words, or an id such as that of a call", text)
	case len(terms) > maxTerms:
		return Search{}, messages.Refuse(messages.BadInput, "text has %d words and phrases: a search has at most %d", len(terms), maxTerms)
	}
	for i, term := range terms {
		terms[i] = `"` + strings.ReplaceAll(term, "\x00", " ") + `"` // a zero byte would end the expression
	}
	return Search{id: strings.Trim(text, `"`), words: strings.Join(terms, " ")}, nil
}

// inWord reports whether r belongs to words, for the tokenizer unicode61.
func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Co) }
