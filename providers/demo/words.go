package demo

import (
	"strconv"
	"strings"
)

// forms are the ways to ask for a result in words that stand before their
// operands.
var forms = []struct {
	before []string
	rest   []joined
}{
	{[]string{"difference", "between"}, []joined{{[]string{"and"}, "a - b"}}},
	{[]string{"difference", "of"}, []joined{{[]string{"and"}, "a - b"}}},
	{[]string{"quotient", "of"}, []joined{{[]string{"and"}, "a / b"}}},
	{[]string{"remainder", "of"}, []joined{{[]string{"divided", "by"}, "a % b"}}},
	{[]string{"add"}, []joined{{[]string{"and"}, "a + b"}, {[]string{"to"}, "b + a"}}},
	{[]string{"subtract"}, []joined{{[]string{"from"}, "b - a"}}},
	{[]string{"take"}, []joined{{[]string{"from"}, "b - a"}}},
	{[]string{"multiply"}, []joined{{[]string{"by"}, "a * b"}, {[]string{"and"}, "a * b"}, {[]string{"with"}, "a * b"}}},
	{[]string{"divide"}, []joined{{[]string{"by"}, "a / b"}}},
	{[]string{"?square", "root", "of"}, []joined{{nil, "sqrt(a)"}}},
	{[]string{"square", "of"}, []joined{{nil, "a^2"}}},
	{[]string{"cube", "of"}, []joined{{nil, "a^3"}}},
	{[]string{"half", "?of"}, []joined{{nil, "a / 2"}}},
	{[]string{"double"}, []joined{{nil, "2 * a"}}},
	{[]string{"twice"}, []joined{{nil, "2 * a"}}},
}

// joined is what stands between the operands a and b, nil if there is only a,
// and the expression that it makes of them.
type joined struct {
	between []string
	out     string
}

// form reads an operand: one in words, or a number or parentheses.
func (r *reader) form() (string, bool) {
	if r.at == len(r.tokens) || r.tokens[r.at].kind != word {
		return r.primary()
	}
	for _, f := range forms {
		if r.say(append([]string{"?the"}, f.before...)...) {
			return r.operands(f.rest)
		}
	}
	if r.say("?the", "sum", "of") {
		return r.list("+")
	}
	if r.say("?the", "product", "of") {
		return r.list("*")
	}
	return r.primary()
}

// operands reads a and, in the first way that fits, what comes after it.
func (r *reader) operands(ways []joined) (string, bool) {
	a, ok := r.argument(ways[0].out)
	if !ok {
		return "", false
	}
	r.operations, r.firm = r.operations+1, true
	for _, way := range ways {
		switch {
		case way.out == "sqrt(a)":
			return "sqrt(" + a + ")", true
		case way.between == nil:
			return "(" + strings.Replace(way.out, "a", group(a), 1) + ")", true
		case r.say(way.between...):
			b, ok := r.product()
			return "(" + strings.NewReplacer("a", group(a), "b", group(b)).Replace(way.out) + ")", ok
		}
	}
	return "", false
}

// argument reads the first operand. That of a remainder ends before
// "divided by", and that of a root or the like binds closer than any sign.
func (r *reader) argument(out string) (string, bool) {
	if strings.Contains(out, "b") && !strings.Contains(out, "%") {
		return r.product()
	}
	return r.power()
}

// list reads two or more operands with commas and "and" between them.
func (r *reader) list(op string) (string, bool) {
	var all []string
	for {
		before := *r
		if len(all) > 0 {
			comma := r.at < len(r.tokens) && r.tokens[r.at].text == ","
			if comma {
				r.at++
			}
			if !r.say("and") && !comma {
				break
			}
		}
		e, ok := r.product()
		if !ok {
			*r = before
			break
		}
		all = append(all, group(e))
	}
	r.operations, r.firm = r.operations+len(all)-1, true
	return "(" + strings.Join(all, " "+op+" ") + ")", len(all) > 1
}

// primary reads a number, one in words, a percentage of something, or
// parentheses.
func (r *reader) primary() (string, bool) {
	if r.at == len(r.tokens) {
		return "", false
	}
	switch t := r.tokens[r.at]; t.kind {
	case left:
		r.at++
		before := r.operations
		e, ok := r.sum()
		if !ok || r.at == len(r.tokens) || r.tokens[r.at].kind != right {
			return "", false
		}
		r.at++
		r.firm = r.firm || r.operations > before
		return "(" + e + ")", true
	case number:
		r.at++
		return r.percent(t.text)
	case word:
		if n, ok := r.spelled(); ok {
			return r.percent(n)
		}
	}
	return "", false
}

// percent reads what follows "15%" or "15 percent": "of" and an operand.
func (r *reader) percent(n string) (string, bool) {
	before := *r
	if _, ok := r.sign("%"); !ok && !r.say("percent") && !r.say("per", "cent") {
		return n, true
	}
	if r.say("of") {
		if e, ok := r.power(); ok {
			r.operations, r.firm = r.operations+1, true
			return "(" + n + " / 100 * " + group(e) + ")", true
		}
	}
	*r = before
	return n, true
}

var spelled = map[string]int{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
	"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
	"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000, "million": 1000000,
}

// spelled reads a number in words, such as "two hundred forty-one".
func (r *reader) spelled() (string, bool) {
	total, part, start := 0, 0, r.at
	for r.at < len(r.tokens) && r.tokens[r.at].kind == word {
		for _, w := range strings.Split(r.tokens[r.at].text, "-") {
			n, ok := spelled[w]
			switch {
			case !ok || total > 1e12 || part > 1e12:
				return strconv.Itoa(total + part), r.at > start
			case n >= 1000:
				total, part = total+max(part, 1)*n, 0
			case n == 100:
				part = max(part, 1) * n
			case part%10 != 0 || part%100 != 0 && n >= 10:
				return strconv.Itoa(total + part), true // "two three" is no number
			default:
				part += n
			}
		}
		r.at++
	}
	return strconv.Itoa(total + part), r.at > start
}
