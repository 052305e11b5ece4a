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
	"github.com/reprise-dev/reprise/providers/profile"
)

type body []byte

func (b body) RoundTrip(r *http.Request) (*http.Response, error) {
	if sent, err := io.ReadAll(r.Body); err != nil || !json.Valid(sent) {
		panic("the request is no JSON: " + string(sent))
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, nil
}

// FuzzStream: whatever a server sends over either API, the result is a whole answer or an
// *Error; ids of calls are never empty and never the same.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"hi\",\"x\":[{\"index\":0}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},{\"id\":\"a\",\"function\":{\"name\":\"g\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n"))
	f.Add([]byte(": x\ndata: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n"))
	f.Add([]byte("data: {\"error\":"))
	f.Add([]byte("data:"))
	f.Add([]byte("data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"\"}}\n\n" +
		"data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n"))
	f.Add([]byte("data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"reasoning\",\"summary\":[{\"text\":1}]},{\"type\":\"message\",\"content\":\"x\"}]}}\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, api := range []profile.Value{profile.Chat, profile.Responses} {
			fuzzed(t, New("", HTTPClient(&http.Client{Transport: body(b)}), Rules(profile.Rules{API: api})))
		}
	})
}

// fuzzed asks twice, the second time with the first answer in the history.
func fuzzed(t *testing.T, p *Provider) {
	r := providers.Request{Model: "m"}
	for range 2 {
		resp, err := p.Generate(context.Background(), r, nil)
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
		for _, it := range resp.Items {
			r.Items = append(r.Items, it)
			if it.Type == messages.ItemCall {
				r.Items = append(r.Items, messages.Item{Type: messages.ItemCallOutput, CallID: it.CallID})
			}
		}
	}
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
