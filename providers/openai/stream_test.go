package openai

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/internal/wire"
	"github.com/reprise-dev/reprise/providers/profile"
)

// streamed returns a streamed answer of n tokens, size bytes each.
func streamed(n, size int) body {
	var b strings.Builder
	token := strings.Repeat("x", size)
	for range n {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`+"\n\n", token)
	}
	b.WriteString(`data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n")
	b.WriteString(`data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}` + "\n\ndata: [DONE]\n\n")
	return body(b.String())
}

// streamedItem is streamed over the Responses API.
func streamedItem(n, size int) body {
	var b strings.Builder
	token := strings.Repeat("x", size)
	for i := range n {
		fmt.Fprintf(&b, "event: response.output_text.delta\n"+`data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"%s","sequence_number":%d}`+"\n\n", token, i)
	}
	item := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + strings.Repeat(token, n) + `","annotations":[]}]}`
	b.WriteString(`data: {"type":"response.output_item.done","output_index":0,"item":` + item + "}\n\n")
	b.WriteString(`data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[` + item + "]}}\n\n")
	return body(b.String())
}

// streams are streamed answers by API.
var streams = map[profile.Value]func(n, size int) body{profile.Chat: streamed, profile.Responses: streamedItem}

func replaying(api profile.Value, answer body) *Provider {
	return New("", BaseURL("http://127.0.0.1:1/v1"), HTTPClient(&http.Client{Transport: answer}), Rules(profile.Rules{API: api}))
}

func parse(t testing.TB, p *Provider) providers.Response {
	resp, err := p.Generate(t.Context(), providers.Request{Model: "m", Items: []messages.Item{messages.Text(messages.RoleUser, "hi")}}, func(providers.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// BenchmarkStream measures the reading of a streamed answer without a network.
func BenchmarkStream(b *testing.B) {
	for _, run := range []struct {
		api    profile.Value
		tokens int
	}{{profile.Chat, 0}, {profile.Chat, 1000}, {profile.Chat, 100_000}, {profile.Responses, 0}, {profile.Responses, 1000}, {profile.Responses, 100_000}} {
		tokens, p := run.tokens, replaying(run.api, streams[run.api](run.tokens, 4))
		b.Run(fmt.Sprintf("api=%s/tokens=%d", run.api, tokens), func(b *testing.B) {
			b.ReportAllocs()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				parse(b, p)
			}
			runtime.ReadMemStats(&after)
			if n := float64(b.N) * float64(tokens); tokens > 0 {
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/token")
				b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/token")
			}
		})
	}
}

// The memory that a streamed answer takes grows with its size and no faster: one of 10 MB of
// text takes at most 15 times what one of 1 MB does.
func TestLongAnswer(t *testing.T) {
	const size = 100
	taken := func(api profile.Value, tokens int) float64 {
		p := replaying(api, streams[api](tokens, size))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		resp := parse(t, p)
		runtime.ReadMemStats(&after)
		if got := len(resp.Items[0].Content.Text()); got != size*tokens {
			t.Fatalf("%d bytes of text, want %d", got, size*tokens)
		}
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	for api := range streams {
		small := taken(api, 10_000)
		if large := taken(api, 100_000); large > 15*small {
			t.Errorf("%s: 1 MB of text takes %.0f bytes, 10 MB takes %.0f", api, small, large)
		}
	}
}

// Where the arguments of a call are complete is known piece by piece as if they were read from
// the start each time, and each byte is read once.
func TestReading(t *testing.T) {
	for _, text := range []string{
		`{}`, ` {"a":"}"} `, `{"a":"\"}","b":{"c":[{}]}}`, `{}{}`, `{} x`, `{"a" 1} {}`, `}{}`, `[{}]`, `"{}"`, `{"a":"\\"}`, `{"a\`, "",
	} {
		for size := 1; size <= 3; size++ {
			var r reading
			for end := 0; end < len(text); {
				end = min(end+size, len(text))
				r.goOn([]byte(text[:end]))
				if got, want := r.whole && !r.broken, wire.Complete([]byte(text[:end])); got != want {
					t.Errorf("%s: complete is %t, want %t", text[:end], got, want)
				}
				if r.depth == 0 && !r.quoted && strings.HasSuffix(text[:end], "}") && !r.whole && !r.broken {
					t.Errorf("%s: it is read on", text[:end])
				}
				if r.at < end && !r.broken {
					t.Errorf("%s: %d bytes are read", text[:end], r.at)
				}
			}
		}
	}
}

// While a call is written, which is not shown, the answer is seen to continue.
func TestCallsAreSeen(t *testing.T) {
	for api, answer := range map[profile.Value]body{
		profile.Chat: body("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n"),
		profile.Responses: body("data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{}\"}\n\n" +
			"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"}]}}\n\n"),
	} {
		var seen []providers.Delta
		r := providers.Request{Model: "m", Items: []messages.Item{messages.Text(messages.RoleUser, "hi")}}
		if _, err := replaying(api, answer).Generate(t.Context(), r, func(d providers.Delta) { seen = append(seen, d) }); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 1 || seen[0] != (providers.Delta{}) {
			t.Errorf("%s: got %+v", api, seen)
		}
	}
}
