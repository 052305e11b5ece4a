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
)

func ask(text string) providers.Request {
	return providers.Request{Model: "assistant", Instructions: "Be brief.", Items: []messages.Item{messages.Text(messages.RoleUser, text)}}
}

// A51
func TestStreams(t *testing.T) {
	var said []string
	response, err := New().Generate(t.Context(), ask("hello there"), func(d providers.Delta) {
		if d.Kind != providers.DeltaText {
			t.Errorf("a delta of kind %s", d.Kind)
		}
		said = append(said, d.Text)
	})
	if err != nil {
		t.Fatal(err)
	}
	text := response.Items[0].Content.Text()
	if strings.Join(said, "") != text || len(said) != len(strings.Fields(text)) {
		t.Errorf("the deltas %q make no %q", said, text)
	}
	if response.Finish != "stop" || response.Model != "assistant" {
		t.Errorf("got %+v", response)
	}
	if want := (messages.Usage{Input: 4, Output: len(said)}); response.Usage != want {
		t.Errorf("the usage is %+v; want %+v", response.Usage, want)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := New(Delay(time.Nanosecond)).Generate(ctx, ask("hello"), func(providers.Delta) { cancel() })
	var failure *providers.Error
	if !errors.As(err, &failure) || failure.Kind != providers.Canceled {
		t.Errorf("canceled while it speaks, it fails with %v", err)
	}
	if _, err := New().Generate(ctx, ask("hello"), nil); !errors.As(err, &failure) || failure.Kind != providers.Canceled {
		t.Errorf("canceled before, it fails with %v", err)
	}
	slow, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := New(Delay(time.Hour)).Generate(slow, ask("hello"), nil)
		done <- err
	}()
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled in a pause, it fails with %v", err)
	}
}

func TestMaxOutputTokens(t *testing.T) {
	r := ask("hello")
	r.Settings.MaxOutputTokens = 3
	response, err := New().Generate(t.Context(), r, nil)
	if err != nil || response.Finish != "length" || response.Items[0].Content.Text() != "I am the" || response.Usage.Output != 3 {
		t.Errorf("got %+v, %v", response, err)
	}
}

func TestCallIDs(t *testing.T) {
	r := ask("2+2 and 3+3")
	r.Tools = []providers.ToolSpec{{Name: "calculator", Parameters: []byte(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}`)}}
	first, err := New().Generate(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := New().Generate(t.Context(), r, nil)
	if err != nil || !reflect.DeepEqual(first, again) {
		t.Errorf("the same request gives %+v and %+v, %v", first, again, err)
	}
	if len(first.Items) != 2 || first.Finish != "tool_calls" || first.Items[0].CallID == first.Items[1].CallID {
		t.Fatalf("got %+v", first)
	}
	// The same question again, and ids that are taken: all differ.
	used := map[messages.CallID]bool{}
	for range 10 {
		response, err := New().Generate(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range response.Items {
			if used[item.CallID] || item.CallID == "" {
				t.Errorf("the id %q comes twice", item.CallID)
			}
			used[item.CallID] = true
			r.Items = append(r.Items, item, messages.Item{Type: messages.ItemCallOutput, CallID: item.CallID, Output: "4"})
		}
		r.Items = append(r.Items, messages.Text(messages.RoleAssistant, "done"), messages.Text(messages.RoleUser, "2+2 and 3+3"))
	}
}

func TestFill(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"city":{"type":"string"},"days":{"type":"integer"},"factor":{"type":"number"},
		"unit":{"type":"string","enum":["celsius","fahrenheit"]},"verbose":{"type":"boolean"},
		"tags":{"type":["null","array"],"items":{"type":"string"}}},"required":["city"]}`
	for text, want := range map[string]string{
		"weather Paris":                            `{"city":"Paris"}`,
		"weather for Paris, please":                `{"city":"Paris"}`,
		`weather "New York"`:                       `{"city":"New York"}`,
		"weather city=Oslo days=3":                 `{"city":"Oslo","days":3}`,
		"weather Paris 3 1.5 in Celsius":           `{"city":"Paris in","days":3,"factor":1.5,"unit":"celsius"}`,
		"weather verbose=yes city: Rome":           `{"city":"Rome","verbose":true}`,
		`weather {"city": "X", "other": [1]}`:      `{"city": "X", "other": [1]}`,
		"Paris weather":                            `{"city":"Paris"}`,
		"weather Paris. Weather city=Rome 5":       `{"city":"Paris"} {"city":"Rome","days":5}`,
		"what is the weather in Paris for 2 days?": `{"city":"in Paris for","days":2}`,
	} {
		var p plan
		p.understand(text, []providers.ToolSpec{{Name: "weather", Parameters: []byte(schema)}})
		var got []string
		for _, c := range p.calls {
			got = append(got, c.arguments)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q fills %s, lacking %q; want %s", text, got, p.lacking, want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"send_email", "Please send email to bob", "send email"},
		{"send-email", "SEND_EMAIL", "SEND_EMAIL"},
		{"clock", "o'clocks", ""},
		{"___", "___ _", ""},
		{"", "anything", ""},
	} {
		_, start, end := named(c.text, []providers.ToolSpec{{Name: c.name}})
		if got := c.text[start:end]; got != c.want {
			t.Errorf("%q names %s by %q; want %q", c.text, c.name, got, c.want)
		}
	}
}

func TestExpressions(t *testing.T) {
	for text, want := range map[string]string{
		"What is 17 times 3?": "17 * 3", "What’s 2 + 2?": "2 + 2", "(3+4)^2": "(3 + 4)^2", "17 × 3 = ?": "17 * 3", "what is 17x3?": "17 * 3",
		"10 ÷ 4": "10 / 4", "10 − 4": "10 - 4", "2 to the power of 10": "2^10", "2**10": "2^10", "17 mod 5": "17 % 5",
		"3 - -3": "3 - -3", "-5 + 3": "-5 + 3", "1,000 + 2,500.50": "1000 + 2500.50", "10-3": "10 - 3", "What is 100/5/2?": "100 / 5 / 2",
		"((1 + 2) * 3)": "((1 + 2) * 3)", "2+2, 3+3 and 4 times 4": "2 + 2; 3 + 3; 4 * 4", "(2 + 3": "2 + 3", "(as 2 + 3)": "2 + 3",
		"2 +": "", "I tried 3 times": "", "due 01/02/2024": "", "10.0.0.0/24": "", "bob+1@example.com": "", "room A4-3": "", "5kg + 3kg": "",
	} {
		var got []string
		for _, e := range expressionsIn(text) {
			got = append(got, e.value)
		}
		if joined := strings.Join(got, "; "); joined != want {
			t.Errorf("%q holds %q; want %q", text, joined, want)
		}
	}
}

// FuzzGenerate holds every message and schema to an answer whose arguments
// are a JSON object, to the same answer when asked again, and to the tool that
// is forced.
func FuzzGenerate(f *testing.F) {
	const schema = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number"},"e":{"enum":["x",1]},"b":{"type":"boolean"},"l":{"type":"array"}},"required":["a"]}`
	for _, s := range []string{"t a=1, n: 2", `t {"a":1}`, "17 times 3", "t 'x' yes 007", "t n=1e5 b=no", "what time is it in Paris?", "t \xff\x00", "add 3 and (4", "t -.5 l=q"} {
		f.Add(s, schema)
	}
	f.Fuzz(func(t *testing.T, text, schema string) {
		r := ask(text)
		r.Tools = []providers.ToolSpec{{Name: "t", Parameters: []byte(schema)}, {Name: "calc", Description: "calculate", Parameters: []byte(`{"properties":{"expression":{"type":"string"}}}`)}}
		first, err := New().Generate(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range first.Items {
			var object map[string]any
			if item.Type == messages.ItemCall && json.Unmarshal([]byte(item.Arguments), &object) != nil {
				t.Errorf("%q makes the arguments %q", text, item.Arguments)
			}
		}
		if again, err := New().Generate(t.Context(), r, nil); err != nil || !reflect.DeepEqual(first, again) {
			t.Errorf("%q is answered by %+v and %+v, %v", text, first, again, err)
		}
		r.ToolChoice = "t"
		forced, err := New().Generate(t.Context(), r, nil)
		if err != nil || len(forced.Items) == 0 {
			t.Fatalf("forced, %q gives %+v, %v", text, forced, err)
		}
		for _, item := range forced.Items {
			var object map[string]any
			if item.Name != "t" || json.Unmarshal([]byte(item.Arguments), &object) != nil {
				t.Errorf("forced, %q makes %+v", text, item)
			}
		}
	})
}
