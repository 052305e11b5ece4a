package toolbox

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// parser reads an expression and computes it on the way. go/parser is not
// used: in Go ^ is no power and binds like +, and 010 is eight.
//
//	sum     = product { ("+" | "-") product }
//	product = signed { ("*" | "/" | "%") signed }
//	signed  = { "+" | "-" } power
//	power   = primary [ "^" signed ]
//	primary = number | "(" sum ")" | "sqrt" primary | "√" primary
type parser struct {
	in    []rune
	at    int
	depth int
	// rounded says that the value went through something that is no fraction.
	rounded bool
}

// spelling unifies the ways to write an operator.
var spelling = strings.NewReplacer("**", "^", "×", "*", "·", "*", "⋅", "*", "∗", "*", "÷", "/", "∕", "/", "−", "-", "–", "-", "\u00a0", " ", "\u202f", " ", "√", " sqrt ", "²", "^2", "³", "^3")

// parse is the value of an expression, and whether it is exact.
func parse(expression string) (v *big.Rat, exact bool, err error) {
	if len(expression) > maxExpression {
		return nil, false, fmt.Errorf("it is longer than %d bytes", maxExpression)
	}
	text := strings.TrimRight(spelling.Replace(expression), " \t\r\n=?")
	if strings.TrimSpace(text) == "" {
		return nil, false, errors.New("it is empty")
	}
	p := &parser{in: []rune(text)}
	v, err = p.sum()
	if err == nil && p.peek() != 0 {
		return nil, false, p.unexpected("an operator")
	}
	return v, !p.rounded, err
}

// peek is the next character that is no space; 0 at the end. A times sign
// written as x counts as *.
func (p *parser) peek() rune {
	for p.at < len(p.in) && unicode.IsSpace(p.in[p.at]) {
		p.at++
	}
	switch {
	case p.at == len(p.in):
		return 0
	case p.in[p.at] == 0:
		return unicode.ReplacementChar // a NUL is not the end
	case p.in[p.at] == 'x' || p.in[p.at] == 'X':
		return '*'
	}
	return p.in[p.at]
}

func (p *parser) unexpected(wanted string) error {
	if p.peek() == 0 {
		return fmt.Errorf("it ends where %s should stand", wanted)
	}
	return fmt.Errorf("%q stands where %s should, at character %d", p.in[p.at], wanted, p.at+1)
}

// chain reads operands of next joined by operators out of ops, left to right.
func (p *parser) chain(ops string, next func() (*big.Rat, error)) (*big.Rat, error) {
	v, err := next()
	for err == nil {
		op := p.peek()
		if op == 0 || !strings.ContainsRune(ops, op) {
			return v, nil
		}
		p.at++
		var w *big.Rat
		if w, err = next(); err == nil {
			v, err = apply(op, v, w)
		}
	}
	return nil, err
}

func (p *parser) sum() (*big.Rat, error)     { return p.chain("+-", p.product) }
func (p *parser) product() (*big.Rat, error) { return p.chain("*/%", p.signed) }

// within guards next against expressions nested too deep.
func (p *parser) within(next func() (*big.Rat, error)) (*big.Rat, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	v, err := next()
	p.depth--
	return v, err
}

func (p *parser) signed() (*big.Rat, error) {
	switch p.peek() {
	case '+':
		p.at++
		return p.within(p.signed)
	case '-':
		p.at++
		v, err := p.within(p.signed)
		if err != nil {
			return nil, err
		}
		return new(big.Rat).Neg(v), nil
	}
	base, err := p.primary()
	if err != nil || p.peek() != '^' {
		return base, err
	}
	p.at++
	exponent, err := p.within(p.signed)
	if err != nil {
		return nil, err
	}
	return p.power(base, exponent)
}

func (p *parser) primary() (*big.Rat, error) {
	switch c := p.peek(); {
	case c == '(':
		p.at++
		v, err := p.within(p.sum)
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, p.unexpected(`an operator or ")"`)
		}
		p.at++
		return v, nil
	case c == '.' || '0' <= c && c <= '9':
		return p.number()
	case strings.HasPrefix(strings.ToLower(string(p.in[p.at:min(len(p.in), p.at+4)])), "sqrt"):
		p.at += 4
		v, err := p.within(p.primary)
		if err != nil {
			return nil, err
		}
		return p.sqrt(v)
	}
	return nil, p.unexpected("a number")
}

// number reads digits with a point, commas between groups of three, and an
// exponent.
func (p *parser) number() (*big.Rat, error) {
	start := p.at
	p.digits()
	for p.at+4 <= len(p.in) && p.in[p.at] == ',' && p.at > start && p.at-start <= 3+4*strings.Count(string(p.in[start:p.at]), ",") {
		comma := p.at
		p.at++
		if p.digits() != 3 {
			p.at = comma
			break
		}
	}
	if p.at < len(p.in) && p.in[p.at] == '.' {
		p.at++
		p.digits()
	}
	if err := p.scale(); err != nil {
		return nil, err
	}
	v, ok := new(big.Rat).SetString(strings.ReplaceAll(string(p.in[start:p.at]), ",", ""))
	if !ok {
		p.at = start
		return nil, p.unexpected("a number")
	}
	if p.at < len(p.in) && strings.ContainsRune(",.", p.in[p.at]) {
		return nil, fmt.Errorf("%q at character %d: write decimals with one point, and commas only between groups of three digits", p.in[p.at], p.at+1)
	}
	if p.at+1 < len(p.in) && v.Sign() == 0 && p.in[p.at] == 'x' && p.in[p.at+1] != ' ' {
		return nil, errors.New("numbers are decimal: 0x is not understood")
	}
	return bounded(v)
}

// digits skips digits and counts them.
func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.in) && '0' <= p.in[p.at] && p.in[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// scale skips an exponent such as e6 if there is one.
func (p *parser) scale() error {
	if p.at == len(p.in) || p.in[p.at] != 'e' && p.in[p.at] != 'E' {
		return nil
	}
	start := p.at
	p.at++
	if p.at < len(p.in) && (p.in[p.at] == '+' || p.in[p.at] == '-') {
		p.at++
	}
	from := p.at
	if p.digits() == 0 {
		p.at = start
		return nil
	}
	if n, err := strconv.Atoi(string(p.in[from:p.at])); err != nil || n > maxScale {
		return errTooLarge
	}
	return nil
}
