package demo

import (
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds how deep signs, parentheses and forms stand in one another.
const maxDepth = 20

// found is an expression in a message.
type found struct {
	expression string // as a calculator reads it
	start, end int    // where in the message it stands
}

// expressions finds the arithmetic in a message.
func expressions(text string) []found {
	tokens := lex(text)
	var all []found
	for i := 0; i < len(tokens); {
		r := &reader{tokens: tokens, at: i}
		e, ok := r.sum()
		if !ok || r.operations == 0 || !r.firm && !asked(tokens, i, r.at) {
			if ok && r.operations > 0 {
				i = r.at // a range, a score, a size: its parts are none either
			} else {
				i++
			}
			continue
		}
		all = append(all, found{e, tokens[i].start, tokens[r.at-1].end})
		i = r.at
	}
	return all
}

// cues are words that ask for a result when they stand before 10-3 or 1/2.
var cues = []string{"what is", "what's", "whats", "much is", "calculate", "compute", "evaluate", "solve", "work out", "result of", "value of"}

// asked says that a message asks for what stands in tokens[from:to], because
// it says so or has nothing else.
func asked(tokens []token, from, to int) bool {
	before := ""
	for _, t := range tokens[max(0, from-2):from] {
		before += " " + t.text
	}
	for _, c := range cues {
		if strings.HasSuffix(before, " "+c) {
			return true
		}
	}
	for i, t := range tokens {
		alone := t.kind == other && len(t.text) == 1 || t.kind == word && slices.Contains([]string{"please", "thanks"}, t.text)
		if (i < from || i >= to) && !alone {
			return false
		}
	}
	return true
}

// reader reads one expression from the tokens of a message, as far as it goes.
type reader struct {
	tokens     []token
	at         int
	operations int
	// firm says that something is surely arithmetic, unlike 10-3 and 24/7.
	firm  bool
	depth int
}

// say skips the words if they come next, in which "?" marks one that may lack.
func (r *reader) say(words ...string) bool {
	at := r.at
	for _, w := range words {
		optional := strings.HasPrefix(w, "?")
		if at < len(r.tokens) && r.tokens[at].kind == word && r.tokens[at].text == strings.TrimPrefix(w, "?") {
			at++
		} else if !optional {
			return false
		}
	}
	r.at = at
	return true
}

// sign skips one of the operators if it comes next.
func (r *reader) sign(ops string) (string, bool) {
	if r.at == len(r.tokens) {
		return "", false
	}
	t := r.tokens[r.at]
	if t.kind != operator || !strings.Contains(ops, t.text) {
		return "", false
	}
	r.at++
	r.firm = r.firm || !t.tight
	return t.text, true
}

// infix reads an operator: signs of ops, or the words of one of them.
func (r *reader) infix(ops string) (string, bool) {
	if op, ok := r.sign(ops); ok {
		return op, true
	}
	for _, w := range infixes {
		if strings.Contains(ops, w.op) && r.say(w.words...) {
			r.firm = r.firm || w.words[0] != "over"
			return w.op, true
		}
	}
	return "", false
}

var infixes = []struct {
	op    string
	words []string
}{
	{"+", []string{"plus"}},
	{"-", []string{"minus"}}, {"-", []string{"less"}},
	{"*", []string{"times"}}, {"*", []string{"multiplied", "by"}}, {"*", []string{"x"}},
	{"/", []string{"divided", "by"}}, {"/", []string{"over"}},
	{"%", []string{"mod"}}, {"%", []string{"modulo"}},
	{"^", []string{"to", "the", "power", "of"}}, {"^", []string{"raised", "to", "?the", "?power", "?of"}},
}

// chain reads operands of next, joined by ops; what lacks its right side is
// left unread.
func (r *reader) chain(ops string, next func() (string, bool)) (string, bool) {
	e, ok := next()
	for ok {
		before := *r
		op, more := r.infix(ops)
		if !more {
			break
		}
		operand, whole := next()
		if !whole {
			*r = before
			break
		}
		r.operations++
		e += " " + op + " " + operand
	}
	return e, ok
}

func (r *reader) sum() (string, bool)     { return r.chain("+-", r.product) }
func (r *reader) product() (string, bool) { return r.chain("*/%", r.power) }

// power reads a signed operand and what it is raised to.
func (r *reader) power() (string, bool) {
	if r.depth++; r.depth > maxDepth {
		return "", false
	}
	defer func() { r.depth-- }()
	start := *r
	if op, ok := r.sign("-"); ok || r.say("minus") || r.say("negative") {
		if ok && op == "-" {
			r.firm = start.firm
		}
		e, ok := r.power()
		if !ok {
			*r = start
		}
		return "-" + e, ok
	}
	e, ok := r.form()
	if !ok {
		*r = start
		return "", false
	}
	for i, words := range []string{"squared", "cubed"} {
		if r.say(words) {
			r.operations, r.firm = r.operations+1, true
			e = group(e) + "^" + strconv.Itoa(i+2)
		}
	}
	before := *r
	if _, more := r.infix("^"); more {
		if exponent, whole := r.power(); whole {
			r.operations++
			return group(e) + "^" + exponent, true
		}
		*r = before
	}
	return e, true
}

// group puts what has operators or a sign into parentheses.
func group(e string) string {
	if strings.Trim(e, "0123456789.") == "" || strings.HasPrefix(e, "(") && strings.Index(e, ")") == len(e)-1 {
		return e
	}
	return "(" + e + ")"
}
