package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/anthropic"
)

// FuzzAnswer holds that no stream panics, that what is kept of it is JSON, and that it can be sent
// back to the model, where the body is JSON again.
func FuzzAnswer(f *testing.F) {
	for _, events := range [][]string{
		{began, block("0", `{"type":"text","text":"a"}`), piece("0", `{"type":"text_delta","text":"b"}`), ended("end_turn"), stopped},
		{began, block("0", `{"type":"thinking","thinking":""}`), piece("0", `{"type":"signature_delta","signature":"s"}`), ended("max_tokens")},
		{began, block("1", `{"type":"tool_use","id":"x","name":"f","input":{},"caller":1}`), piece("1", `{"type":"input_json_delta","partial_json":"{"}`), ended("tool_use")},
		{began, block("0", `{"type":"web_search_tool_result","tool_use_id":"x","content":[1]}`), piece("0", `{"type":"citations_delta","citation":{}}`), ended("pause_turn")},
		{`{"type":"message","content":[{"type":"text","text":"a"},1,null],"stop_reason":"refusal","stop_details":{"explanation":"no"}}`},
		{began, block("0", `null`), piece("0", `{"a":"b"}`), ended("end_turn")},
		{began, block("0", `{"type":"tool_use","id":"x","name":"f","input":{},"":1}`), ended("tool_use")},
		{began, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`},
	} {
		f.Add(strings.Join(events, "\n"))
	}
	f.Fuzz(func(t *testing.T, events string) {
		stream := "data: " + strings.ReplaceAll(events, "\n", "\n\ndata: ") + "\n\n"
		sent := 0
		p := anthropic.New(key, anthropic.HTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			sent++
			if body, err := io.ReadAll(r.Body); err != nil || !json.Valid(body) {
				t.Errorf("%v: sent %s", err, body)
			}
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(stream))}, nil
		})}))
		resp, err := p.Generate(t.Context(), ask(), func(providers.Delta) {})
		if err != nil {
			return
		}
		items := resp.Items
		for _, it := range resp.Items {
			if it.Raw != nil && !json.Valid(it.Raw) || it.Type == "" {
				t.Errorf("%+v", it)
			}
			if it.Type == messages.ItemCall {
				items = append(items, messages.Item{Type: messages.ItemCallOutput, CallID: it.CallID, Output: "1"})
			}
		}
		before := sent
		if _, err = p.Generate(t.Context(), ask(items...), nil); sent == before {
			t.Errorf("what was given cannot be sent back: %v", err)
		}
	})
}
