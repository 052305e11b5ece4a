package demo

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/tool"
)

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
		{"echo", "What is 2+2?", "echo", ""},
		{"echo", "", "echo", `{"text":""}`},
		{"refund", "hello", "refund", `{"cents":1,"order":"hello"}`},
		{"refund", "refund order 7 with 300 cents", "refund", `{"order":"7","cents":300}`},
		{"calculator", "What is 2+2?", "calculator", `{"expression":"2 + 2"}`},
		{"clock", "do not use the clock", "clock", `{}`},
	} {
		response := choose(t, k, c.choice, c.text)
		if len(response.Items) != 1 || response.Finish != "tool_calls" {
			t.Errorf("%s, %q: got %+v", c.choice, c.text, response)
			continue
		}
		got := response.Items[0]
		if got.Type != messages.ItemCall || got.Name != c.tool || c.arguments != "" && got.Arguments != c.arguments {
			t.Errorf("%s, %q: got %s(%s), want %s(%s)", c.choice, c.text, got.Name, got.Arguments, c.tool, c.arguments)
		}
		if again := choose(t, k, c.choice, c.text); again.Items[0].CallID != got.CallID {
			t.Errorf("%s, %q: asked again, the id is another", c.choice, c.text)
		}
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

// A34
func TestNoCallAllowed(t *testing.T) {
	k := &talker{t: t, tools: kitchen()}
	for _, text := range []string{"What is 2+2?", "echo hello", "What time is it?", "hello"} {
		response := choose(t, k, "none", text)
		got := response.Items[0]
		if got.Type != messages.ItemMessage || response.Finish != "stop" || strings.Contains(got.Content.Text(), "lets me call no tool") == (text == "hello") {
			t.Errorf("%q: got %+v", text, response)
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
