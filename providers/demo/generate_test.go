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
	tests := []struct{ text, want string }{
		{"weather Paris", `{"city":"Paris"}`},
		{"weather for Paris, please", `{"city":"Paris"}`},
		{`weather "New York"`, `{"city":"New York"}`},
		{"weather city=Oslo days=3", `{"city":"Oslo","days":3}`},
		{"weather city: New York, days: 3, unit: fahrenheit", `{"city":"New York","days":3,"unit":"fahrenheit"}`},
		{"weather city: New York days: 3", `{"city":"New York","days":3}`},
		{"weather Paris 3 1.5 in Celsius", `{"city":"Paris","days":3,"factor":1.5,"unit":"celsius"}`},
		{"weather Paris 1.5", `{"city":"Paris","factor":1.5}`},
		{"weather Paris for 1,000 days", `{"city":"Paris","days":1000}`},
		{"weather Paris verbose", `{"city":"Paris","verbose":true}`},
		{"weather Paris not verbose", `{"city":"Paris","verbose":false}`},
		{"weather city is Rome", `{"city":"Rome"}`},
		{`weather {"city": "X", "other": [1]}`, `{"city": "X", "other": [1]}`},
		{"I want the weather of Paris", `{"city":"Paris"}`},
		{"Paris weather", `{"city":"Paris"}`},
		{"weather days=007 city=A\x00B", `{"city":"A","days":7}`},
	}
	k := kits([]providers.ToolSpec{{Name: "weather", Parameters: []byte(schema)}})[0]
	for _, test := range tests {
		got, missing := fill(k, test.text, k.mention.FindStringIndex(test.text))
		if got != test.want || missing != nil {
			t.Errorf("%q fills %s, without %+v; want %s", test.text, got, missing, test.want)
		}
	}
}

func TestFillRequired(t *testing.T) {
	tests := []struct{ schema, text, want string }{
		{`{"properties":{"tags":{"type":"array","items":{"type":"string"}}},"required":["tags"]}`, "t red, green and blue", `{"tags":["red","green","blue"]}`},
		{`{"properties":{"n":{"type":"array","items":{"type":"integer"}}},"required":["n"]}`, "t 3, 4 and 5", `{"n":[3,4,5]}`},
		{`{"properties":{"b":{"type":"boolean"}},"required":["b"]}`, "t yes", `{"b":true}`},
		{`{"properties":{"o":{"type":"object"},"c":{"const":"k"},"d":{"type":"integer","default":4},"e":{"enum":["one"]}},"required":["o","c","d","e"]}`, "t", `{"o":{},"c":"k","d":4,"e":"one"}`},
		{`{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"integer"}]}},"required":["a"]}`, "t 5", `{"a":5}`},
		{`{"properties":{"from":{"type":"string"},"to":{"type":"string"}},"required":["from","to"]}`, `t "a" "b"`, `{"from":"a","to":"b"}`},
		{`{"type":"object"}`, "t whatever", `{}`},
		{`not JSON`, "t whatever", `{}`},
		{``, "t", `{}`},
		{`{"properties":[]}`, "t", `{}`},
	}
	for _, test := range tests {
		k := kits([]providers.ToolSpec{{Name: "t", Parameters: []byte(test.schema)}})[0]
		got, missing := fill(k, test.text, []int{0, 1})
		if got != test.want || missing != nil {
			t.Errorf("%s: %q fills %s, without %+v; want %s", test.schema, test.text, got, missing, test.want)
		}
	}
}

func TestMentions(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"send_email", "Send an email to bob", "Send an email"},
		{"sendEmail", "please send email", "send email"},
		{"lookup", "look up banana", "look up"},
		{"lookup", `say "lookup"`, ""},
		{"clock", "o'clocks", ""},
		{"t", "at it", ""},
		{"___", "___", ""},
	}
	for _, test := range tests {
		got := ""
		for _, m := range mentions(test.text, kits([]providers.ToolSpec{{Name: test.name}})) {
			got += test.text[m.at.start:m.at.end]
		}
		if got != test.want {
			t.Errorf("%q names %s by %q; want %q", test.text, test.name, got, test.want)
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
