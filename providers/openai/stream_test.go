package openai

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
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

func reading(answer body) *Provider {
	return New("", BaseURL("http://127.0.0.1:1/v1"), HTTPClient(&http.Client{Transport: answer}))
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
	for _, tokens := range []int{0, 1000, 100_000} {
		p := reading(streamed(tokens, 4))
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
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
	taken := func(tokens int) float64 {
		p := reading(streamed(tokens, size))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		resp := parse(t, p)
		runtime.ReadMemStats(&after)
		if got := len(resp.Items[0].Content.Text()); got != size*tokens {
			t.Fatalf("%d bytes of text, want %d", got, size*tokens)
		}
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	small := taken(10_000)
	if large := taken(100_000); large > 15*small {
		t.Errorf("1 MB of text takes %.0f bytes, 10 MB takes %.0f", small, large)
	}
}
