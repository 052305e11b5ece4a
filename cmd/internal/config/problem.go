package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Problem is one mistake in a file.
type Problem struct {
	File string `json:"-"`
	// Line and Col count from 1, in characters. Zero: the file as a whole.
	Line int `json:"line"`
	Col  int `json:"col"`
	// What is wrong, and what to do about it; Do is empty where What has both.
	What string `json:"what"`
	Do   string `json:"do"`
}

// Error is file:line:col: what; what to do.
func (p Problem) Error() string {
	text := p.File
	if p.Line != 0 {
		text = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
	}
	text += ": " + p.What
	if p.Do != "" {
		text += "; " + p.Do
	}
	return text
}

// Problems is every mistake of a file, in the order of the file; never empty.
type Problems []Problem

// Error is one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

type place struct{ line, col int }

// maxProblems is how many are shown of a file that is wrong throughout.
const maxProblems = 100

type collector struct {
	file  string
	found Problems
}

func (c *collector) add(at place, do, what string, args ...any) {
	c.found = append(c.found, Problem{c.file, at.line, at.col, fmt.Sprintf(what, args...), do})
}

// err is what was found, in the order of the file and each once; nil if nothing.
func (c *collector) err() error {
	if len(c.found) == 0 {
		return nil
	}
	slices.SortStableFunc(c.found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	ps := slices.Compact(c.found)
	if n := len(ps) - maxProblems; n > 0 {
		more := Problem{File: c.file, What: fmt.Sprintf("%d more problems are not shown", n), Do: "mend the first ones and check again"}
		ps = append(ps[:maxProblems:maxProblems], more)
	}
	return ps
}

// OfAgent returns the errors in err, which are about an agent of the file, at its place.
func (c *Config) OfAgent(kind string, err error) (list Problems) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, c.OfAgent(kind, e)...)
		}
		return list
	}
	if err == nil {
		return nil
	}
	at := c.places[spot("agent", kind)]
	return Problems{{File: c.File, Line: at.line, Col: at.col, What: err.Error()}}
}

// Nearest returns the word among words that word was likely meant to be; empty if
// none is close.
func Nearest(word string, words []string) string {
	if len(word) > 64 {
		return ""
	}
	best, distance := "", min(3, max(1, len(word)/2))+1
	for _, w := range words {
		if hidden(w) {
			continue
		}
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(w)); d < distance {
			best, distance = w, d
		}
	}
	return best
}

// meant is what to do about a word that is none of words.
func meant(word string, words []string, what string) string {
	if w := Nearest(word, words); w != "" {
		return fmt.Sprintf("did you mean %q?", w)
	}
	words = slices.Compact(slices.DeleteFunc(slices.Clone(words), hidden))
	switch len(words) {
	case 0:
		return "there are no " + what
	case 1:
		return "there is only " + words[0]
	}
	return fmt.Sprintf("the %s are %s", what, strings.Join(words, ", "))
}

// shown is a word from the file in quotes, or a hint of it where it might be a
// secret that slipped into the wrong line.
func shown(word string) string {
	if hidden(word) {
		return "(not shown)"
	}
	return `"` + word + `"`
}

// hidden reports whether a word looks more like a key than like a name.
func hidden(word string) bool {
	return len(word) > 31 || strings.HasPrefix(word, "sk-") ||
		strings.ContainsFunc(word, func(r rune) bool { return !wordRune(r) && r != '.' && r != '/' && r != ' ' && r != '*' })
}

func wordRune(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// titled is "agent "support"" for a name that has its place in the file as a name.
func titled(what, name string) string {
	if len(name) > 128 {
		return what + " (not shown)"
	}
	return fmt.Sprintf("%s %q", what, name)
}
