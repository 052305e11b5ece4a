package demo

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

type refund struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// kitchen is a set of tools to play with.
func kitchen() []tool.Tool {
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	return []tool.Tool{
		toolbox.Calculator(),
		toolbox.ClockAt(func() time.Time { return noon }),
		toolbox.Echo(),
		tool.New("refund", "Pay an order back to the customer", tool.Pause, func(_ context.Context, r refund) (string, error) {
			if r.Cents > 10000 {
				return "", errors.New("error: that is too much")
			}
			return "order " + r.Order + " is paid back", nil
		}),
	}
}

// talker is a conversation with the model, the tools run in between.
type talker struct {
	t     *testing.T
	tools []tool.Tool
	items []messages.Item
	asked []messages.Item // the calls of the last answer
}

func (k *talker) request() providers.Request {
	r := providers.Request{Model: "assistant", Items: k.items}
	for _, made := range k.tools {
		s := made.Spec()
		r.Tools = append(r.Tools, providers.ToolSpec{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return r
}

// say adds a user's message and gives the answer.
func (k *talker) say(text string) string {
	k.t.Helper()
	k.items, k.asked = append(k.items, messages.Text(messages.RoleUser, text)), nil
	for range 5 {
		response, err := New().Generate(k.t.Context(), k.request(), nil)
		if err != nil {
			k.t.Fatal(err)
		}
		k.items = append(k.items, response.Items...)
		if response.Finish != "tool_calls" {
			return response.Items[0].Content.Text()
		}
		for _, c := range response.Items {
			k.asked = append(k.asked, c)
			k.items = append(k.items, messages.Item{Type: messages.ItemCallOutput, CallID: c.CallID, Output: k.run(c)})
		}
	}
	k.t.Fatalf("%q goes in circles", text)
	return ""
}

func (k *talker) run(c messages.Item) string {
	for _, made := range k.tools {
		if made.Spec().Name == c.Name {
			output, err := made.Call(k.t.Context(), json.RawMessage(c.Arguments))
			if err != nil {
				return err.Error()
			}
			return output
		}
	}
	k.t.Errorf("the model calls %s, which is no tool", c.Name)
	return ""
}

func TestAnswers(t *testing.T) {
	tests := []struct{ text, want string }{
		{"What is 17 times 3?", "17 times 3 is 51."},
		{"what's 2+2*5", "2+2*5 is 12."},
		{"12.5 divided by 4, please", "12.5 divided by 4 is 3.125."},
		{"What is (3+4)^2?", "(3+4)^2 is 49."},
		{"sum of 3 and 4", "The sum of 3 and 4 is 7."},
		{"Add 3 and 4", "Adding 3 and 4 is 7."},
		{"subtract 4 from 10", "Subtracting 4 from 10 is 6."},
		{"What is 2+2 and 3*3?", "2+2 is 4. 3*3 is 9."},
		{"2+2 and again 2+2", "2+2 is 4."},
		{"1/0", `I could not work out 1/0: cannot calculate "1 / 0": division by zero.`},
		{"use the calculator for 6*7", "6*7 is 42."},
		{"calculator: sqrt(16)", "Sqrt(16) is 4."},
		{"What time is it?", "clock says: 2026-07-01T12:00:00Z."},
		{"what's the date today in New York?", "clock says: 2026-07-01T08:00:00-04:00."},
		{"clock", "clock says: 2026-07-01T12:00:00Z."},
		{"What time is it in Europe/Berlin and what is 2+2?", "clock says: 2026-07-01T14:00:00+02:00. 2+2 is 4."},
		{"echo the cat sat", "echo says: the cat sat."},
		{`use echo with "hello world", please`, "echo says: hello world."},
		{`Say "hi" with echo.`, "echo says: hi."},
		{"echo 2+2", "echo says: 2+2."},
		{"echo hello, then what is 1+1?", "1+1 is 2. echo says: hello."},
		{"refund order 7 with 300 cents", "refund says: order 7 is paid back."},
		{"refund order=A-7, cents=300", "refund says: order A-7 is paid back."},
		{`refund {"order":"7","cents":20000}`, "refund failed: error: that is too much."},
		{"Please pay the customer of order 9 back: 500 cents", "refund says: order 9 is paid back."},
		{"refund order 7", "To call refund I still need cents (integer): name the tool and write cents=…, or give all arguments as a JSON object."},
	}
	for _, test := range tests {
		k := &talker{t: t, tools: kitchen()}
		if got := k.say(test.text); !sameSentences(got, test.want) {
			t.Errorf("%q is answered by %q; want %q", test.text, got, test.want)
		}
	}
}

// sameSentences says that two answers hold the same, in any order of calls.
func sameSentences(a, b string) bool {
	count := func(s string) map[string]int {
		n := map[string]int{}
		for _, sentence := range strings.SplitAfter(s+" ", ". ") {
			n[sentence]++
		}
		return n
	}
	return reflect.DeepEqual(count(a), count(b))
}

func TestNoCall(t *testing.T) {
	for _, text := range []string{
		"hello", "", "which tools do you have?", "what does refund do?", "help", "don't use the clock", "I have 3 apples",
		"Go 1.26 came out on 2026-02-10", "who are you?", "do not call echo",
	} {
		k := &talker{t: t, tools: kitchen()}
		got := k.say(text)
		if len(k.asked) > 0 || !strings.Contains(got, "offline demo model") || !strings.Contains(got, "refund (Pay an order back to the customer)") {
			t.Errorf("%q is answered by %q after %+v", text, got, k.asked)
		}
	}
}

func TestWithoutTools(t *testing.T) {
	k := &talker{t: t}
	for text, want := range map[string]string{
		"What is 17 times 3?": "I read “17 times 3” as 17 * 3, but I have no calculator",
		"What time is it?":    "I have no clock",
		"hello":               "You said: “hello”. I can repeat what was said here; I am given no tools.",
	} {
		if got := k.say(text); !strings.Contains(got, want) {
			t.Errorf("%q is answered by %q; want %q", text, got, want)
		}
	}
}

func TestRemembers(t *testing.T) {
	k := &talker{t: t, tools: kitchen()}
	steps := []struct{ text, want string }{
		{"what did I say before?", "This is the first thing you say to me."},
		{"My name is Ada.", "You said: “My name is Ada.”."},
		{"What is 2+2?", "2+2 is 4."},
		{"What's my name?", "You told me: “My name is Ada.”."},
		{"What did I say before?", "Before this you said: “what did I say before?”, then “My name is Ada.”, then “What is 2+2?”, then “What's my name?”."},
		{"Were you interrupted?", "I see no note"},
	}
	for _, step := range steps {
		if got := k.say(step.text); !strings.Contains(got, step.want) {
			t.Errorf("%q is answered by %q; want %q", step.text, got, step.want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	k := &talker{t: t, tools: kitchen()}
	const note = "The user interrupted the turn above before it was finished."
	k.items = []messages.Item{
		messages.Text(messages.RoleUser, "echo one"),
		{Type: messages.ItemCall, CallID: "c1", Name: "echo", Arguments: `{"text":"one"}`},
		{Type: messages.ItemCallOutput, CallID: "c1", Output: "not run: the turn was stopped before its start"},
		messages.Text(messages.RoleDeveloper, note),
	}
	if got := k.say("What happened?"); got != "The runtime told me: “"+note+"”." {
		t.Errorf("asked for the interruption, it says %q", got)
	}
	if got := k.say("echo one"); got != "echo says: one." {
		t.Errorf("asked again, it says %q", got)
	}
}

// A message that steers a running turn is dealt with beside what was asked first.
func TestSteered(t *testing.T) {
	k := &talker{t: t, tools: kitchen()}
	k.items = []messages.Item{
		messages.Text(messages.RoleUser, "What is 2+2?"),
		{Type: messages.ItemCall, CallID: "c1", Name: "calculator", Arguments: `{"expression":"2 + 2"}`},
		{Type: messages.ItemCallOutput, CallID: "c1", Output: "4"},
	}
	if got := k.say("And 3*3?"); got != "2+2 is 4. 3*3 is 9." || len(k.asked) != 1 {
		t.Errorf("got %q after %+v", got, k.asked)
	}
}

func TestToldOfFailures(t *testing.T) {
	k := &talker{t: t, tools: kitchen()}
	answer := func(output string) string {
		k.items = []messages.Item{
			messages.Text(messages.RoleUser, "refund order 7 with 300 cents"),
			{Type: messages.ItemCall, CallID: "c1", Name: "refund", Arguments: `{}`},
			{Type: messages.ItemCallOutput, CallID: "c1", Output: output},
		}
		response, err := New().Generate(t.Context(), k.request(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return response.Items[0].Content.Text()
	}
	for output, want := range map[string]string{
		"exit code 3: no such order": "refund failed: exit code 3: no such order.",
		"":                           "refund answered with nothing.",
		"a\nb":                       "refund says:\na\nb",
		"Ask a person!":              "refund says: Ask a person!",
		strings.Repeat("é", 5000):    "refund says: " + strings.Repeat("é", 4000) + "… (1000 more characters).",
	} {
		if got := answer(output); got != want {
			t.Errorf("%.40q is told as %q; want %q", output, got, want)
		}
	}
}

func TestNumericTools(t *testing.T) {
	type pair struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}
	k := &talker{t: t, tools: []tool.Tool{
		tool.New("multiply_numbers", "Multiply", tool.ReadOnly, func(_ context.Context, p pair) (string, error) {
			text, err := json.Marshal(p.A * p.B)
			return string(text), err
		}),
	}}
	if got := k.say("what is 6 times 7?"); got != "6 times 7 is 42." {
		t.Errorf("got %q", got)
	}
	if got := k.say("what is 6 plus 7?"); !strings.Contains(got, "no calculator") {
		t.Errorf("got %q", got)
	}
}

func TestSilent(t *testing.T) {
	for _, items := range [][]messages.Item{nil, {messages.Text(messages.RoleAssistant, "hi")}, {{Type: "computer_call"}}} {
		response, err := New().Generate(t.Context(), providers.Request{Items: items}, nil)
		if err != nil || !strings.Contains(response.Items[0].Content.Text(), "not said anything new") {
			t.Errorf("got %+v, %v", response, err)
		}
	}
	response, err := New().Generate(t.Context(), providers.Request{Items: []messages.Item{messages.Text(messages.RoleDeveloper, "Hurry.")}}, nil)
	if err != nil || response.Items[0].Content.Text() != "The runtime told me: “Hurry.”." {
		t.Errorf("got %+v, %v", response, err)
	}
}
