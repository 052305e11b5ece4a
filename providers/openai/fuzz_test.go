package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

type body []byte

func (b body) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, nil
}

// FuzzStream: whatever a server sends, the result is a whole answer or an
// *Error; ids of calls are never empty and never the same.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"hi\",\"x\":[{\"index\":0}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},{\"id\":\"a\",\"function\":{\"name\":\"g\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n"))
	f.Add([]byte(": x\ndata: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n"))
	f.Add([]byte("data: {\"error\":"))
	f.Add([]byte("data:"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := New("", HTTPClient(&http.Client{Transport: body(b)}))
		resp, err := p.Generate(context.Background(), providers.Request{Model: "m"}, nil)
		if err != nil {
			var e *providers.Error
			if !errors.As(err, &e) || e.Kind == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if resp.Finish == "" {
			t.Fatal("an answer without a finish reason succeeded")
		}
		seen := map[messages.CallID]bool{}
		for _, it := range resp.Items {
			if it.Type == messages.ItemCall && (it.CallID == "" || seen[it.CallID]) {
				t.Fatalf("calls %+v", resp.Items)
			}
			seen[it.CallID] = true
			if it.Raw != nil && !json.Valid(it.Raw) {
				t.Fatalf("raw %s", it.Raw)
			}
		}
	})
}

// FuzzTree: a tree grown of JSON writes that JSON, and joined with another
// value it is still JSON.
func FuzzTree(f *testing.F) {
	for _, s := range []string{`{}`, `[ ]`, `{"a" : [1,{"b":"\"]"}], "c\n":null}`, `"x"`, `-1.5e9`, ` true `, `[{"index":1,"x":"a"},{"index":1,"x":"b"}]`} {
		f.Add([]byte(s), []byte(`{"a":[{"index":0}]}`))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		if !json.Valid(one) || !json.Valid(two) {
			return
		}
		var a, b any
		one, two = bytes.TrimSpace(one), bytes.TrimSpace(two)
		written := grow(one).append(nil)
		if json.Unmarshal(one, &a) != nil || json.Unmarshal(written, &b) != nil {
			t.Skip("out of range for float64")
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if !bytes.Equal(x, y) {
			t.Fatalf("%s was written as %s", one, written)
		}
		if joined := grow(one).merge("", grow(two)).append(nil); !json.Valid(joined) {
			t.Fatalf("%s and %s became %s", one, two, joined)
		}
	})
}
