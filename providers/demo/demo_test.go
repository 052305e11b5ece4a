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

// say adds a user's message and returns the answer.
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
		{"What is 2+2 and 3*3?", "2+2 is 4. 3*3 is 9."},
		{"2+2 and again 2+2", "2+2 is 4."},
		{"What is 1/0?", `calculator says: cannot calculate "1 / 0": division by zero.`},
		{"use the calculator for 6*7", "6*7 is 42."},
		{"calculator: sqrt(16)", "calculator says: 4."},
		{"What time is it?", "clock says: 2026-07-01T12:00:00Z."},
		{"clock", "clock says: 2026-07-01T12:00:00Z."},
		{"echo the cat sat", "echo says: the cat sat."},
		{`use echo with "hello. world", please`, "echo says: hello. world."},
		{`Say "hi" with echo.`, "echo says: hi."},
		{"echo 2+2", "echo says: 2+2."},
		{"echo hello! Then what is 1+1?", "1+1 is 2. echo says: hello."},
		{"refund order 7 with 300 cents", "refund says: order 7 is paid back."},
		{"Refund 300 cents for order 7.", "refund says: order 7 is paid back."},
		{"refund order=A-7, cents=300", "refund says: order A-7 is paid back."},
		{`refund {"order":"7. 8","cents":20000}`, "refund says: error: that is too much."},
		{"refund order 7", "To call refund I need more: write cents=…, or all arguments as a JSON object."},
	}
	for _, test := range tests {
		k := &talker{t: t, tools: kitchen()}
		if got := k.say(test.text); !sameSentences(got, test.want) {
			t.Errorf("%q is answered by %q; want %q", test.text, got, test.want)
		}
	}
}

// sameSentences reports whether two answers hold the same, in any order of calls.
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
		"hello", "which tools do you have?", "what does refund do?", "don't use the clock", "I have 3 apples",
		"Go 1.26 came out on 2026-02-10", "do not call echo", "open 24/7, 10-12 o'clocks", "a 1920x1080 screen", "call 555-123-4567", "10:30-11:30", "v1.2 + v1.3",
	} {
		k := &talker{t: t, tools: kitchen()}
		got := k.say(text)
		if len(k.asked) > 0 || !strings.Contains(got, "offline demo model") || !strings.Contains(got, "You said: “"+text+"”.") || !strings.Contains(got, "refund (Pay an order back to the customer)") {
			t.Errorf("%q is answered by %q after %+v", text, got, k.asked)
		}
	}
	if got := (&talker{t: t}).say("What is 17 times 3?"); !strings.Contains(got, "I am given no tools") {
		t.Errorf("without tools it says %q", got)
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
	if got := k.say("echo one"); got != "echo says: one." {
		t.Errorf("asked again after an interrupt, it says %q", got)
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

func TestTold(t *testing.T) {
	for output, want := range map[string]string{
		"exit code 3: no such order": "refund says: exit code 3: no such order.",
		"":                           "refund says nothing.",
		"a\nb":                       "refund says:\na\nb",
		"Ask a person!":              "refund says: Ask a person!",
		strings.Repeat("é", 5000):    "refund says: " + strings.Repeat("é", 4000) + "… (1000 more characters).",
	} {
		if got := (call{"refund", "{}", output}).told(nil); got != want {
			t.Errorf("%.40q is told as %q; want %q", output, got, want)
		}
	}
}

func TestSilent(t *testing.T) {
	for _, items := range [][]messages.Item{nil, {messages.Text(messages.RoleAssistant, "hi")}, {{Type: "computer_call"}}} {
		response, err := New().Generate(t.Context(), providers.Request{Items: items}, nil)
		if err != nil || !strings.Contains(response.Items[0].Content.Text(), "not said anything new") {
			t.Errorf("got %+v, %v", response, err)
		}
	}
}

// choose is what the model does with a text under a tool choice.
func choose(t *testing.T, k *talker, choice, text string) providers.Response {
	t.Helper()
	k.items = []messages.Item{messages.Text(messages.RoleUser, text)}
	r := k.request()
	r.ToolChoice = choice
	response, err := New().Generate(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// A34
func TestForcedChoice(t *testing.T) {
	k := &talker{t: t, tools: kitchen()}
	for _, c := range []struct{ choice, text, tool, arguments string }{
		{"required", "hello", "clock", `{}`}, // needs no argument
		{"required", "What is 2+2?", "calculator", `{"expression":"2 + 2"}`},
		{"required", "refund order 7 with 300 cents", "refund", `{"order":"7","cents":300}`},
		{"echo", "hello", "echo", `{"text":"hello"}`},
		{"echo", "", "echo", `{"text":""}`},
		{"refund", "hello", "refund", `{"cents":1,"order":"hello"}`},
		{"clock", "do not use the clock", "clock", `{}`},
	} {
		response := choose(t, k, c.choice, c.text)
		if len(response.Items) != 1 || response.Finish != "tool_calls" {
			t.Errorf("%s, %q: got %+v", c.choice, c.text, response)
			continue
		}
		if got := response.Items[0]; got.Name != c.tool || got.Arguments != c.arguments {
			t.Errorf("%s, %q: got %s(%s), want %s(%s)", c.choice, c.text, got.Name, got.Arguments, c.tool, c.arguments)
		}
	}
	if got := choose(t, k, "none", "What is 2+2?"); got.Finish != "stop" || got.Items[0].Type != messages.ItemMessage {
		t.Errorf("none: got %+v", got)
	}
}

// A34: forced again after its result, the model calls again, under a new id.
func TestForcedTwice(t *testing.T) {
	k := &talker{t: t, tools: kitchen()}
	first := choose(t, k, "clock", "hello").Items[0]
	k.items = append(k.items, first, messages.Item{Type: messages.ItemCallOutput, CallID: first.CallID, Output: "noon"})
	for choice, calls := range map[string]bool{"clock": true, "required": true, "": false, "none": false} {
		r := k.request()
		r.ToolChoice = choice
		response, err := New().Generate(t.Context(), r, nil)
		if err != nil || (response.Finish == "tool_calls") != calls || response.Items[0].CallID == first.CallID {
			t.Errorf("%q: got %+v, %v", choice, response, err)
		}
	}
}

// A34: made-up arguments fit the schema as far as types go.
func TestMadeUpArguments(t *testing.T) {
	type all struct {
		Text string            `json:"text"`
		N    int               `json:"n"`
		X    float64           `json:"x"`
		Yes  bool              `json:"yes"`
		List []int             `json:"list"`
		Map  map[string]string `json:"map"`
	}
	ran := false
	made := tool.New("everything", "", tool.ReadOnly, func(context.Context, all) (string, error) { ran = true; return "", nil })
	response := choose(t, &talker{t: t, tools: []tool.Tool{made}}, "required", "")
	if _, err := made.Call(t.Context(), json.RawMessage(response.Items[0].Arguments)); err != nil || !ran {
		t.Errorf("%s: %v", response.Items[0].Arguments, err)
	}
}

func TestChoiceOfNothing(t *testing.T) { // A34
	for choice, tools := range map[string][]tool.Tool{"required": nil, "lookup": kitchen()} {
		r := (&talker{t: t, tools: tools}).request()
		r.ToolChoice = choice
		_, err := New().Generate(t.Context(), r, nil)
		if e := providers.AsError(err); err == nil || e.Kind != providers.BadRequest || !strings.Contains(e.Message, choice) {
			t.Errorf("%s: %v", choice, err)
		}
	}
}
