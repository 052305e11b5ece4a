package demo

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// kind is what a token is to arithmetic.
type kind int

const (
	other kind = iota // no part of an expression
	number
	operator
	word
	left  // (
	right // )
)

// token is a piece of a message.
type token struct {
	kind       kind
	text       string // a number's digits, an operator as the calculator writes it, a word in lower case
	start, end int
	tight      bool // an operator without space on both sides
}

var (
	// opaque is what has digits and signs but is no arithmetic: addresses,
	// dates, times, versions, telephone numbers.
	opaque = regexp.MustCompile(`^(?:https?://\S+|www\.\S+|[\w.+-]{1,64}@[\w-]{1,64}\.\S+|\d{4}-\d{1,2}-\d{1,2}\b(?:T\S+)?|\d{4}/\d{1,2}/\d{1,2}\b|\d{1,2}[-./]\d{1,2}[-./]\d{4}\b|\d+(?:\.\d+){2,}(?:[-/+]\S+)?|\d{1,2}:\d\d(?::\d\d)?(?:[-–]\d{1,2}:\d\d)?|\d{3}-\d{3}-\d{4}\b|\(\d{3}\) ?\d{3}-\d{4}\b|#\d\S*)`)
	digits = regexp.MustCompile(`^[$€£]?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)`)
	// times is an x between digits, which makes no word of a number.
	times  = regexp.MustCompile(`^[xX]\d`)
	letter = regexp.MustCompile(`^[\pL_]`)
	name   = regexp.MustCompile(`^[\pL_][\pL\pN_'’]*(?:-[\pL][\pL\pN_'’]*)*`)
	run    = regexp.MustCompile(`^[\pL\pN_.-]*[\pL\pN_]`)
)

var operators = []struct{ in, out string }{
	{"**", "^"}, {"+", "+"}, {"-", "-"}, {"−", "-"}, {"–", "–"}, {"*", "*"}, {"×", "*"}, {"·", "*"}, {"/", "/"}, {"÷", "/"}, {"^", "^"}, {"%", "%"},
}

// lex splits a message.
func lex(text string) []token {
	var tokens []token
	for i := 0; i < len(text); {
		t := next(text, i)
		if t.kind != other || strings.TrimSpace(t.text) != "" {
			tokens = append(tokens, t)
		}
		i = t.end
	}
	return tokens
}

// next is the token at i.
func next(text string, i int) token {
	rest := text[i:]
	at := func(k kind, s string, length int) token { return token{kind: k, text: s, start: i, end: i + length} }
	if s := opaque.FindString(rest); s != "" {
		return at(other, s, len(s))
	}
	if m := digits.FindStringSubmatch(rest); m != nil {
		after := rest[len(m[0]):]
		if letter.MatchString(after) && !times.MatchString(after) {
			return at(other, "…", len(m[0])+len(run.FindString(after))) // 3rd, 5kg
		}
		return at(number, strings.ReplaceAll(m[1], ",", ""), len(m[0]))
	}
	if times.MatchString(rest) && i > 0 && text[i-1] >= '0' && text[i-1] <= '9' {
		t := at(operator, "*", 1)
		t.tight = true
		return t
	}
	if s := name.FindString(rest); s != "" {
		return at(word, strings.ToLower(strings.ReplaceAll(s, "’", "'")), len(s))
	}
	switch rest[0] {
	case '(':
		return at(left, "(", 1)
	case ')':
		return at(right, ")", 1)
	}
	if t, ok := sign(text, i); ok {
		return t
	}
	_, size := utf8.DecodeRuneInString(rest)
	return at(other, rest[:size], size)
}

// sign is the operator at i, if one stands there.
func sign(text string, i int) (token, bool) {
	for _, o := range operators {
		if !strings.HasPrefix(text[i:], o.in) {
			continue
		}
		t := token{kind: operator, text: o.out, start: i, end: i + len(o.in)}
		if o.out == "–" { // a dash between words or numbers
			t.kind = other
		}
		t.tight = !spaced(text, t) && strings.ContainsAny(o.in, "-/")
		return t, true
	}
	return token{}, false
}

// spaced says that white space stands on both sides of a token.
func spaced(text string, t token) bool {
	return t.start > 0 && t.end < len(text) && text[t.start-1] == ' ' && text[t.end] == ' '
}
