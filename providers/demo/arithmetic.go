package demo

import (
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/providers"
)

// expressionArgument is what the calculator's argument is called.
const expressionArgument = "expression"

// calculates reports whether a tool takes an expression.
func calculates(t providers.ToolSpec) bool {
	return slices.ContainsFunc(properties(t.Parameters), func(p property) bool {
		return p.name == expressionArgument && (p.kind == "string" || p.kind == "")
	})
}

// expression is arithmetic in a message.
type expression struct {
	phrase string // as it stands there
	value  string // as a calculator reads it
}

var (
	operators = strings.NewReplacer("plus", "+", "minus", "-", "times", "*", "multiplied by", "*", "divided by", "/",
		"to the power of", "^", "modulo", "%", "mod", "%", "**", "^", "×", "*", "÷", "/", "−", "-", "x", "*", ",", "")
	arithmetic = regexp.MustCompile(`(?i)\(*-?` + aNumber + `\)*(?:\s*(?:\*\*|[-+*/^%×÷−x]|\b(?:plus|minus|times|multiplied by|divided by|to the power of|modulo|mod)\b)\s*\(*-?` + aNumber + `\)*)+`)
	signs      = regexp.MustCompile(`([\d)])\s*([-+*/%^])\s*(-?)`)
	// tight is what may be a date, a range, a score or a size as well: it is taken for
	// arithmetic only if the message has hardly anything else.
	tight = regexp.MustCompile(`(?i)^\d+(?:[-/x]\d+)+$`)
	cue   = regexp.MustCompile(`(?i)^[\s\pP]*(?:what is|what's|what’s|calculate|compute|how much is)?[\s:]*$`)
)

// aNumber matches one.
const aNumber = `(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?`

// expressionsIn finds the arithmetic in a text.
func expressionsIn(text string) (all []expression) {
	for _, at := range arithmetic.FindAllStringIndex(text, -1) {
		start, end := at[0], at[1]
		for opened := strings.Count(text[start:end], "(") - strings.Count(text[start:end], ")"); opened != 0; {
			switch { // one that has no partner belongs to the text around
			case opened > 0 && text[start] == '(':
				start, opened = start+1, opened-1
			case opened < 0 && text[end-1] == ')':
				end, opened = end-1, opened+1
			default:
				opened, start = 0, end
			}
		}
		phrase := text[start:end]
		if phrase == "" || joined(text[:start], text[end:]) || tight.MatchString(phrase) && !cue.MatchString(text[:start]) {
			continue
		}
		value := operators.Replace(strings.ToLower(phrase))
		value = signs.ReplaceAllString(value, "$1 $2 $3")
		all = append(all, expression{phrase, strings.ReplaceAll(value, " ^ ", "^")})
	}
	return all
}

// joined reports whether what stands before or after a number belongs to it, as in v1, 3rd
// or 10:30.
func joined(before, after string) bool {
	last, first := before[max(0, len(before)-1):], after[:min(1, len(after))]
	return strings.ContainsAny(last, "0123456789.-/:#@_=") || letter.MatchString(last) ||
		strings.ContainsAny(first, "0123456789-/:@_") || letter.MatchString(first) || len(after) > 1 && first == "." && after[1] != ' '
}

var letter = regexp.MustCompile(`^\pL`)
