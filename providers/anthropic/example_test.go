package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/anthropic"
)

// A program that imports the package asks Claude over the Messages API; here a server stands for it.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"type":"message_start","message":{"id":"msg_1","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello Ann"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}`,
			`{"type":"message_stop"}`,
		} {
			_, _ = io.WriteString(w, "data: "+event+"\n\n")
		}
	}))
	defer server.Close()

	claude := anthropic.New("sk-ant-0123456789abcdef", anthropic.BaseURL(server.URL))
	request := providers.Request{Model: "claude-sonnet-4-5", Items: []messages.Item{messages.Text(messages.RoleUser, "I am Ann")}}
	response, err := claude.Generate(context.Background(), request, nil)
	fmt.Println(response.Items[0].Content.Text(), response.Finish, response.Usage.Tokens(), err)
	// Output: Hello Ann stop 11 <nil>
}
