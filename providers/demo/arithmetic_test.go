package demo

import (
	"strings"
	"testing"
)

func TestExpressions(t *testing.T) {
	tests := []struct{ text, want string }{
		{"What is 17 times 3?", "17 * 3"},
		{"what's 2+2*5", "2 + 2 * 5"},
		{"What’s 2 + 2?", "2 + 2"},
		{"12.5 divided by 4, please", "12.5 / 4"},
		{"(3+4)^2", "(3 + 4)^2"},
		{"17 x 3", "17 * 3"},
		{"17x3", "17 * 3"},
		{"what is 17x3?", "17 * 3"},
		{"17 × 3 = ?", "17 * 3"},
		{"10 ÷ 4", "10 / 4"},
		{"10 − 4", "10 - 4"},
		{"sum of 3 and 4", "(3 + 4)"},
		{"What is the sum of 1, 2, and 3?", "(1 + 2 + 3)"},
		{"the product of 6 and 7", "(6 * 7)"},
		{"difference between 10 and 4", "(10 - 4)"},
		{"quotient of 9 and 3", "(9 / 3)"},
		{"remainder of 17 divided by 5", "(17 % 5)"},
		{"add 3 and 4", "(3 + 4)"},
		{"Add 5 to 3.", "(3 + 5)"},
		{"subtract 4 from 10", "(10 - 4)"},
		{"multiply 6 by 7", "(6 * 7)"},
		{"divide 10 by 4", "(10 / 4)"},
		{"square root of 2", "sqrt(2)"},
		{"the square root of 16 plus 1", "sqrt(16) + 1"},
		{"5 squared", "5^2"},
		{"2 cubed plus 1", "2^3 + 1"},
		{"2 to the power of 10", "2^10"},
		{"2 raised to the power of 10", "2^10"},
		{"2**10", "2^10"},
		{"2^-1", "2^-1"},
		{"15% of 80", "(15 / 100 * 80)"},
		{"what is 15 percent of 80 plus 1?", "(15 / 100 * 80) + 1"},
		{"17 mod 5", "17 % 5"},
		{"17 % 5", "17 % 5"},
		{"half of 10", "(10 / 2)"},
		{"twice 8", "(2 * 8)"},
		{"what is minus 5 plus 3", "-5 + 3"},
		{"-5 + 3", "-5 + 3"},
		{"3 - -3", "3 - -3"},
		{"seventeen times three", "17 * 3"},
		{"twenty-one plus two hundred five", "21 + 205"},
		{"1,000 + 2,500.50", "1000 + 2500.50"},
		{"$5 + $3", "5 + 3"},
		{"What is 10-3?", "10 - 3"},
		{"10-3", "10 - 3"},
		{"10-3*2", "10 - 3 * 2"},
		{"calculate 1/2", "1 / 2"},
		{"what is 100/5/2?", "100 / 5 / 2"},
		{"what is 22 over 7", "22 / 7"},
		{"((1 + 2) * 3)", "((1 + 2) * 3)"},
		{"I have 3 apples; what is 3*4?", "3 * 4"},
		{"What is 2+2 and 3*3?", "2 + 2; 3 * 3"},
		{"2+2, 3+3 and 4 times 4", "2 + 2; 3 + 3; 4 * 4"},
		{"17 times", ""},
		{"2 +", ""},
		{"(2 + 3", "2 + 3"},
	}
	for _, test := range tests {
		var got []string
		for _, e := range expressions(test.text) {
			got = append(got, e.expression)
		}
		if joined := strings.Join(got, "; "); joined != test.want {
			t.Errorf("%q holds %q; want %q", test.text, joined, test.want)
		}
	}
}

func TestNoExpressions(t *testing.T) {
	for _, text := range []string{
		"", "hello", "3 apples", "3 apples and 4 pears", "I tried 3 times", "3 times a day", "I ran 3 times, 2 minutes each",
		"Go 1.26", "upgrade from Go 1.25 to Go 1.26", "version 1.2.3-4", "v1.2 + v1.3", "gpt-5.5 or gpt-4",
		"2024-05-01", "on 2024-05-01T10:00:00Z", "due 01/02/2024", "05.01.2024", "2024/5/1",
		"call 555-1234", "call 555-123-4567", "phone (555) 123-4567", "+1 555 123 4567", "my number is 030-1234567",
		"10.0.0.1", "10.0.0.0/24", "open 24/7", "a 50-50 chance", "pages 10-12", "the years 1939-1945", "after 9/11",
		"a 1920x1080 screen", "a 4x4 truck", "3x faster", "10:30-11:30", "at 10:30", "ISBN 978-3-16-148410-0",
		"https://example.com/1/2?a=3*4", "mail bob+1@example.com", "issue #12-3", "C++ 17", "room A4-3", "10% off", "1st, 2nd and 3rd",
		"one of us", "the sum of things", "add milk and eggs", "twice as nice", "minus ten degrees", "-5", "(555)", "half a day",
		"I won 3 over you", "the square of London", "divide and conquer", "file-2-3.txt", "a 2-3 day trip", "5kg + 3kg",
	} {
		if got := expressions(text); len(got) > 0 {
			t.Errorf("%q holds %+v; want nothing", text, got)
		}
	}
}

// Nested forms that never end cost no more than their length.
func TestExpressionsOfBombs(t *testing.T) {
	for _, s := range []string{"(", "add ", "multiply ", "- ", "sum of ", "5% of ", "2 ^ ", "square root of ", "1 + (", "divide 2 by "} {
		if got := expressions(strings.Repeat(s, 2000)); len(got) > 2000 {
			t.Errorf("%q repeated holds %d expressions", s, len(got))
		}
	}
}
