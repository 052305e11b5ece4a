package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
)

// Any server that speaks the Chat Completions API is reached at its base URL.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"1","model":"local-7b","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello "}}]}

data: {"id":"1","model":"local-7b","choices":[{"index":0,"delta":{"content":"Ann"},"finish_reason":"stop"}]}

data: {"id":"1","model":"local-7b","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}

data: [DONE]

`)
	}))
	defer server.Close()

	local := openai.New("", openai.BaseURL(server.URL))
	request := providers.Request{Model: "local-7b", Items: []messages.Item{messages.Text(messages.RoleUser, "I am Ann")}}
	response, err := local.Generate(context.Background(), request, func(d providers.Delta) { fmt.Printf("%q ", d.Text) })
	fmt.Println(err)
	fmt.Println(response.Items[0].Content.Text(), response.Finish, response.Usage.Tokens())
	// Output:
	// "Hello " "Ann" <nil>
	// Hello Ann stop 11
}
