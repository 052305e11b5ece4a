package toolbox

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestCalculate(t *testing.T) {
	tests := []struct{ in, want string }{
		{"17 * 3", "51"},
		{"2+2*5", "12"},
		{"(3+4)^2", "49"},
		{"12.5 / 4", "3.125"},
		{"0.1 + 0.2", "0.3"},
		{"1/3", "0.333333333333333"},
		{"2/3", "0.666666666666667"},
		{"10/4", "2.5"},
		{"1e6 + 1", "1000001"},
		{"1e-3", "0.001"},
		{"1.5E2", "150"},
		{"-2^2", "-4"},
		{"(-2)^2", "4"},
		{"2^-1", "0.5"},
		{"2^3^2", "512"},
		{"2^0.5", "1.4142135623731"},
		{"8^(1/3)", "2"},
		{"sqrt(2)", "1.4142135623731"},
		{"sqrt(9/4)", "1.5"},
		{"sqrt(2)^2", "2"},
		{"√16 + sqrt 9", "7"},
		{"17 % 5", "2"},
		{"-17 % 5", "-2"},
		{"5.5 % 2", "1.5"},
		{"17 × 3", "51"},
		{"17x3", "51"},
		{"17 X 3", "51"},
		{"10 ÷ 4", "2.5"},
		{"10 − 4", "6"},
		{"5²", "25"},
		{"2**10", "1024"},
		{"--3", "3"},
		{"+3", "3"},
		{"3 - -3", "6"},
		{"010 + 1", "11"},
		{"1,000 + 1,234,567.5", "1235567.5"},
		{".5 + 5.", "5.5"},
		{"2+2 = ?", "4"},
		{"(((1)))", "1"},
		{"0^0", "1"},
		{"0/5", "0"},
		{"1^1000000000000", "1"},
		{"(-1)^1000000000001", "-1"},
		{"0^1000000000000", "0"},
		{"2^100", "1267650600228229401496703205376"},
		{"99999999999999999999 + 1", "100000000000000000000"},
		{"1/2^60", "0.000000000000000000867361737988403547205962240695953369140625"},
	}
	for _, test := range tests {
		if got, err := calculate(test.in); err != nil || got != test.want {
			t.Errorf("%s = %s, %v; want %s", test.in, got, err, test.want)
		}
	}
}

func TestCalculateRefuses(t *testing.T) {
	tests := []struct{ in, reason string }{
		{"", "it is empty"},
		{" =?", "it is empty"},
		{"1/0", "division by zero"},
		{"1 % 0", "division by zero"},
		{"1/(2-2)", "division by zero"},
		{"0^-1", "division by zero"},
		{"0^-0.5", "division by zero"},
		{"1 +", "it ends where a number should stand"},
		{"(1 + 2", `it ends where an operator or ")" should stand`},
		{"1 2", `'2' stands where an operator should, at character 3`},
		{"2(3)", `'(' stands where an operator should, at character 2`},
		{"two", `'t' stands where a number should, at character 1`},
		{"1 + * 2", `'*' stands where a number should, at character 5`},
		{"1,5", "commas only between groups"},
		{"1.2.3", "one point"},
		{"1234,567", "commas only between groups"},
		{"0x10", "decimal"},
		{".", "a number should"},
		{"1\x00", "an operator should"},
		{"9^9^9", "too large"},
		{"10^10000", "too large"},
		{"1.0000001^8000", "too large"},
		{"2^-100000", "too large"},
		{"1e999999999", "too large"},
		{"1e99999999999999999999999", "too large"},
		{"2^(10^20+1)", "too large"},
		{"(10^400)^0.5*0.1^0.3 + (10^400)^0.3", "too large"},
		{"sqrt(-1)", "negative"},
		{"(-8)^(1/3)", "negative"},
		{strings.Repeat("(", 500), "nested deeper"},
		{strings.Repeat("-", 500) + "1", "nested deeper"},
		{strings.Repeat("2^", 300) + "1", "nested deeper"},
		{strings.Repeat("1+", 500) + "1", "longer than"},
	}
	for _, test := range tests {
		got, err := calculate(test.in)
		if err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%.40q = %s, %v; want a refusal with %q", test.in, got, err, test.reason)
		}
	}
}

// A31
func TestCalculatorTool(t *testing.T) {
	c := Calculator()
	got, err := c.Call(context.Background(), json.RawMessage(`{"expression":"6*7"}`))
	if err != nil || got != "42" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = c.Call(context.Background(), json.RawMessage(`{"expr":"6*7"}`))
	if err == nil || !strings.Contains(err.Error(), "expr") {
		t.Errorf("a missing argument is answered by %v", err)
	}
}

// FuzzCalculate holds every expression to an end, and every result to a number
// that the calculator itself can read.
func FuzzCalculate(f *testing.F) {
	for _, s := range []string{"1+1", "-2^0.5", "sqrt(2)%3", "1e5/7", "9^9^9", "((", "1,000x3", "√√²", "0^-.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := calculate(s)
		if err != nil {
			return
		}
		if _, ok := new(big.Rat).SetString(got); !ok {
			t.Errorf("%q = %q, which is no number", s, got)
		}
		if len(got) > maxBits {
			t.Errorf("%q gives %d bytes", s, len(got))
		}
	})
}
