package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

func calls(fragments ...string) []string {
	events := make([]string, 0, len(fragments)+1)
	for _, f := range fragments {
		events = append(events, delta(`{"tool_calls":[`+f+`]}`))
	}
	return append(events, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
}

// A38: however a server cuts calls up, they come out as it meant them.
func TestFragments(t *testing.T) {
	for _, c := range []struct {
		name      string
		fragments []string
		want      string
	}{
		{"interleaved", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}`,
			`{"index":1,"function":{"arguments":"{\"y\":"}}`, `{"index":0,"function":{"arguments":"{\"x\":1}"}}`, `{"index":1,"function":{"arguments":"2}"}}`},
			`a=f({"x":1}) b=g({"y":2})`},
		{"out of order", []string{`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`},
			`b=g({}) a=f({})`},
		{"one index for all", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"function":{"arguments":" "}}`},
			`a=f({}) b=f({} )`},
		{"no index, id once", []string{`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"function":{"arguments":":1}"}}`, `{"id":"b","function":{"name":"f","arguments":"{}"}}`},
			`a=f({"x":1}) b=f({})`},
		{"no index, no id", []string{`{"function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"function":{"name":"f","arguments":"{\"x\":2}"}}`},
			`new1=f({"x":1}) new2=f({"x":2})`},
		{"neither arguments nor ids", []string{`{"index":0,"function":{"name":"f","arguments":""}},{"index":0,"function":{"name":"g"}}`, `{"index":1,"function":{"name":"h"}},{"index":1,"function":{"name":"h"}}`},
			`new1=f({}) new2=g({}) new3=h({}) new4=h({})`},
		{"name with each piece", []string{`{"index":0,"function":{"name":"f","arguments":"{\"x\""}},{"index":0,"function":{"name":"f","arguments":":1}"}}`}, `new1=f({"x":1})`},
		{"id and name repeated", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}`},
			`a=f({})`},
		{"index counts fragments", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":1,"id":"a","function":{"arguments":"}"}}`},
			`a=f({})`},
		{"name in pieces", []string{`{"index":0,"id":"a","function":{"name":"we"}}`, `{"index":0,"function":{"name":"igh","arguments":"{}"}}`},
			`a=weigh({})`},
		{"id late", []string{`{"index":0,"id":"","function":{"name":"f"}}`, `{"index":0,"id":"a","function":{"arguments":"{}"}}`},
			`a=f({})`},
		{"one id twice", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":1,"id":"a","function":{"name":"g","arguments":"2"}}`},
			`a=f(1) new2(a)=g(2)`},
		{"an id of the history", []string{`{"index":0,"id":"old","function":{"name":"f","arguments":"{}"}}`}, `new1(old)=f({})`},
		{"arguments as an object", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": [1,"}"]}}}`}, `a=f({"x": [1,"}"]})`},
		{"null everywhere", []string{`{"index":null,"id":"a","type":null,"function":{"name":"f","arguments":null}}`, `{"index":null,"id":null,"function":{"name":null,"arguments":"{}"}}`}, `a=f({})`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, p := start(t, data(calls(c.fragments...)...))
			old := []messages.Item{{Type: messages.ItemCall, CallID: "old", Name: "f"}, {Type: messages.ItemCallOutput, CallID: "old", Output: "x"}}
			var got []string
			for i, it := range generate(t, p, ask(old...)).Items {
				id := string(it.CallID)
				if strings.HasPrefix(id, "call_") && len(id) > 20 {
					id = fmt.Sprint("new", i+1)
				}
				if it.ID != "" {
					id += "(" + it.ID + ")"
				}
				got = append(got, fmt.Sprintf("%s=%s(%s)", id, it.Name, it.Arguments))
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Fatalf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A54: what our types do not cover is kept, joined where it came in pieces.
func TestRaw(t *testing.T) {
	const end = `,"finish_reason":"stop"`
	for _, c := range []struct {
		name   string
		events []string
		want   string // type, text and raw of each item
	}{
		{"nothing unknown", []string{delta(`{"role":"assistant","content":"hi","refusal":null,"audio":null}` + end)}, `message hi ;`},
		{"known members of a chunk", []string{`{"id":"x","object":"o","created":1,"system_fingerprint":"f","service_tier":"s","obfuscation":"zz","choices":[{"delta":{"content":"hi"},"logprobs":null,"finish_reason":"stop"}]}`}, `message hi ;`},
		{"strings continue", []string{delta(`{"content":"h","aside":"o\u006e"}`), delta(`{"content":"i","aside":"e"}` + end)},
			`message hi {"role":"assistant","content":"hi","aside":"o\u006ee"};`},
		{"numbers stay as written", []string{delta(`{"content":"x","n":1.0000000000000000001e3}` + end)},
			`message x {"role":"assistant","content":"x","n":1.0000000000000000001e3};`},
		{"lists continue at their index", []string{
			delta(`{"reasoning":"ab","reasoning_details":[{"type":"t","index":0,"text":"a"}]}`),
			delta(`{"reasoning_details":[{"type":"t","index":1,"data":{"k":1}},{"type":"t","index":0,"text":"b","signature":null}]}`),
			delta(`{"content":"x"}` + end)},
			`reasoning ab ;message x {"role":"assistant","reasoning_content":"ab","content":"x","reasoning_details":[{"type":"t","index":0,"text":"ab","signature":null},{"type":"t","index":1,"data":{"k":1}}]};`},
		{"lists without an index get longer", []string{delta(`{"annotations":[{"a":1}]}`), delta(`{"annotations":[{"a":2}]}` + end)},
			`message  {"role":"assistant","annotations":[{"a":1},{"a":2}]};`},
		{"members of chunks are replaced", []string{`{"citations":["u"],"choices":[{"delta":{"content":"x"}}]}`, `{"citations":["u","v"],"choices":[{"delta":{},"finish_reason":"stop","filter":{"ok":true}}]}`},
			`message x {"role":"assistant","content":"x","citations":["u","v"],"filter":{"ok":true}};`},
		{"probabilities of all chunks", []string{`{"choices":[{"delta":{"content":"x"},"logprobs":{"content":[{"token":"x"}]}}]}`, `{"choices":[{"delta":{"content":"y"},"logprobs":{"content":[{"token":"y"}]},"finish_reason":"stop"}]}`},
			`message xy {"role":"assistant","content":"xy","logprobs":{"content":[{"token":"x"},{"token":"y"}]}};`},
		{"a call's own", []string{delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{","deep":"o"},"extra_content":{"sig":"AA"}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"}","deep":"k"}}]}` + end)},
			`function_call  {"id":"a","type":"function","function":{"name":"f","arguments":"{}","deep":"ok"},"extra_content":{"sig":"AA"}};`},
		{"the message's with a call", []string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}],"note":1}` + end)},
			`function_call  {"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"message":{"note":1}};`},
		{"a call of another form", []string{delta(`{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]}` + end)},
			`custom_call  {"id":"a","type":"custom","custom":{"name":"f","input":"x"}};`},
		{"content in parts", []string{delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"},{"type":"sound","data":"AA"}]}` + end)},
			`reasoning hm ;message hi {"role":"assistant","reasoning_content":"hm","content":[{"type":"sound","data":"AA"}]};`},
		{"thinking as text", []string{delta(`{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"}]}` + end)}, `reasoning hm ;message hi ;`},
		{"no texts", []string{delta(`{"content":{"a":1},"reasoning":{"b":2},"refusal":3}` + end)}, `message  {"role":"assistant","content":{"a":1},"reasoning":{"b":2},"refusal":3};`},
		{"nothing before reasoning", []string{delta(`{"reasoning_content":"","reasoning":null}`), delta(`{"reasoning_content":null,"reasoning":"hm"}`), delta(`{"reasoning":"?"}` + end)}, `reasoning hm? ;`},
		{"a message beside null", []string{`{"choices":[{"message":{"content":"hi"},"delta":null` + end + `}]}`}, `message hi ;`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, p := start(t, data(c.events...))
			var got strings.Builder
			for _, it := range generate(t, p, ask()).Items {
				fmt.Fprintf(&got, "%s %s %s;", it.Type, it.Content.Text(), it.Raw)
				if it.Provider != "here" {
					t.Errorf("provider is %q", it.Provider)
				}
			}
			if got.String() != c.want {
				t.Fatalf("got  %s\nwant %s", got.String(), c.want)
			}
		})
	}
}

func TestOddStreams(t *testing.T) {
	hello := "data: " + delta(`{"content":"hello"},"finish_reason":"stop"`)
	for name, body := range map[string]string{
		"no last line end":   hello,
		"no space":           strings.Replace(hello, "data: ", "data:", 1) + "\n\n",
		"carriage returns":   hello + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"comments and names": ": wait\n\nevent: chunk\nid: 7\n" + hello + "\n\n: bye\n\n",
		"byte order mark":    "\ufeff" + hello + "\n\n",
		"kept alive":         strings.Repeat("\n", 1000) + strings.Repeat(": still here\n\n", 1000) + hello + "\n\n",
		"mislabelled":        " " + hello + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			kind := "text/event-stream"
			if name == "mislabelled" {
				kind = "application/json"
			}
			if resp := generate(t, answering(t, 200, kind, body), ask()); len(resp.Items) != 1 || resp.Items[0].Content.Text() != "hello" {
				t.Fatalf("got %+v", resp)
			}
		})
	}
	// A comment before an error keeps go-openai from reading it; we still do.
	e := fail(t, answering(t, 200, "text/event-stream", ": wait\n\ndata: {\"error\":{\"message\":\"gone\",\"code\":502}}\n\n"), ask())
	if e.Message != "gone" || !e.Temporary {
		t.Fatalf("got %#v", e)
	}
}

func TestUsageForms(t *testing.T) {
	for usage, want := range map[string]messages.Usage{
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens_details":{"reasoning_tokens":2}}`: {Input: 9, Output: 4, Cached: 5, Reasoning: 2},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":null,"prompt_cache_hit_tokens":6}`:                                       {Input: 9, Output: 4, Cached: 6},
		`null`: {Input: 1, Output: 1},
		`"?"`:  {Input: 1, Output: 1},
		`{"prompt_tokens":9.0,"completion_tokens":"4","prompt_tokens_details":[],"total_tokens":true,"cached_tokens":-1}`: {Input: 9, Output: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"cache_creation_input_tokens":3}`:                                       {Input: 9, Output: 4, CacheWrite: 3},
	} {
		_, p := start(t, data(`{"usage":{"prompt_tokens":1,"completion_tokens":1},"choices":[]}`, stop, `{"choices":[],"usage":`+usage+`}`))
		if got := generate(t, p, ask()).Usage; got != want {
			t.Errorf("%s became %+v", usage, got)
		}
	}
}
