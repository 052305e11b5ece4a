package toolbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/reprise-dev/reprise/providers/tool"
)

// The bounds of a calculation. They are wide for people and narrow for bombs
// such as 9^9^9.
const (
	maxExpression = 1000        // bytes
	maxDepth      = 100         // parentheses, signs and powers within one another
	maxBits       = 1 << 13     // of numerator and denominator: about 2,400 digits
	maxDecimals   = 100         // of an exact result; more are rounded
	precision     = 15          // significant digits of a rounded result
	workBits      = 200         // of what cannot be exact, before rounding
	maxScale      = maxBits / 4 // of the exponent in a literal such as 1e6
)

// Calculator computes expressions exactly, as fractions: + - * / % ^, signs,
// parentheses, decimals and sqrt. Results that end are written in full, others
// with 15 significant digits. % is the remainder, with the sign of the
// dividend; ^ is the power and binds to the right.
func Calculator() tool.Tool {
	type calculator struct {
		Expression string `json:"expression" jsonschema:"An arithmetic expression such as (3 + 4)^2 / 7: numbers, + - * / % ^, parentheses, sqrt(x)"`
	}
	return tool.New("calculator", "Calculate an arithmetic expression exactly", tool.ReadOnly, func(_ context.Context, c calculator) (string, error) {
		return calculate(c.Expression)
	})
}

var (
	errTooLarge = errors.New("the numbers become too large")
	errZero     = errors.New("division by zero")
)

// calculate is the value of an expression in decimal.
func calculate(expression string) (string, error) {
	v, exact, err := parse(expression)
	if err != nil {
		return "", fmt.Errorf("cannot calculate %.80q: %w", expression, err)
	}
	return decimal(v, exact), nil
}

// decimal writes v in full if it is exact and ends within maxDecimals, else
// rounded.
func decimal(v *big.Rat, exact bool) string {
	if n, ends := v.FloatPrec(); exact && ends && n <= maxDecimals {
		return v.FloatString(n)
	}
	return new(big.Float).SetPrec(workBits).SetRat(v).Text('g', precision)
}

// bounded is v, unless it has grown too large to compute with.
func bounded(v *big.Rat) (*big.Rat, error) {
	if v.Num().BitLen() > maxBits || v.Denom().BitLen() > maxBits {
		return nil, errTooLarge
	}
	return v, nil
}

// apply is a op b for one of + - * / %.
func apply(op rune, a, b *big.Rat) (*big.Rat, error) {
	v := new(big.Rat)
	switch op {
	case '+':
		v.Add(a, b)
	case '-':
		v.Sub(a, b)
	case '*':
		v.Mul(a, b)
	case '/', '%':
		if b.Sign() == 0 {
			return nil, errZero
		}
		v.Quo(a, b)
		if op == '%' {
			times := new(big.Int).Quo(v.Num(), v.Denom())
			v.Sub(a, v.Mul(b, new(big.Rat).SetInt(times)))
		}
	}
	return bounded(v)
}

// power is a^b: exact for whole b, otherwise rounded.
func (p *parser) power(a, b *big.Rat) (*big.Rat, error) {
	if !b.IsInt() {
		return p.root(a, b)
	}
	if a.Sign() == 0 && b.Sign() < 0 {
		return nil, errZero
	}
	size := max(a.Num().BitLen(), a.Denom().BitLen())
	if unit(a) {
		size = 0 // 1, 0 and -1 do not grow
	}
	n := new(big.Int).Abs(b.Num())
	if size > 0 && (!n.IsInt64() || n.Int64() > maxBits || int64(size-1)*n.Int64() > maxBits) {
		return nil, errTooLarge
	}
	if size == 0 {
		n.And(n, big.NewInt(1)).Add(n, big.NewInt(2)) // same parity, never zero
		if b.Sign() == 0 {
			n.SetInt64(0)
		}
	}
	v := new(big.Rat).SetFrac(new(big.Int).Exp(a.Num(), n, nil), new(big.Int).Exp(a.Denom(), n, nil))
	if b.Sign() < 0 {
		v.Inv(v)
	}
	return bounded(v)
}

// unit reports whether a is -1, 0 or 1.
func unit(a *big.Rat) bool { return a.IsInt() && a.Num().CmpAbs(big.NewInt(1)) <= 0 }

// root is a^b for a fraction b, by way of floating point, but square roots
// are taken with more digits than are shown.
func (p *parser) root(a, b *big.Rat) (*big.Rat, error) {
	if a.Sign() < 0 {
		return nil, errors.New("a root of a negative number is no real number")
	}
	if b.Cmp(big.NewRat(1, 2)) == 0 {
		return p.sqrt(a)
	}
	p.rounded = true
	x, _ := a.Float64()
	y, _ := b.Float64()
	f := math.Pow(x, y)
	switch {
	case a.Sign() == 0 && b.Sign() < 0:
		return nil, errZero
	case math.IsInf(f, 0) || math.IsNaN(f) || f == 0 && a.Sign() != 0:
		return nil, errTooLarge
	}
	rounded := new(big.Rat)
	if _, ok := rounded.SetString(new(big.Float).SetFloat64(f).Text('g', precision)); !ok {
		return nil, errTooLarge
	}
	return bounded(rounded)
}

// sqrt is the square root: exact where there is one, else rounded.
func (p *parser) sqrt(a *big.Rat) (*big.Rat, error) {
	if a.Sign() < 0 {
		return nil, errors.New("a root of a negative number is no real number")
	}
	n, d := new(big.Int).Sqrt(a.Num()), new(big.Int).Sqrt(a.Denom())
	if exact := new(big.Rat).SetFrac(n, d); new(big.Rat).Mul(exact, exact).Cmp(a) == 0 {
		return exact, nil
	}
	p.rounded = true
	f := new(big.Float).SetPrec(workBits).SetRat(a)
	rounded, _ := new(big.Rat).SetString(f.Sqrt(f).Text('g', 3*precision))
	return bounded(rounded)
}
