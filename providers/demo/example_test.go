package demo_test

import (
	"context"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
)

// A sentence with the name of a tool calls that tool, with arguments from the sentence.
func ExampleNew() {
	model := demo.New() // demo.Delay shows how an answer streams
	response, err := model.Generate(context.Background(), providers.Request{
		Model: "demo",
		Items: []messages.Item{messages.Text(messages.RoleUser, "refund order 7 with 300 cents")},
		Tools: []providers.ToolSpec{{Name: "refund", Parameters: []byte(
			`{"type":"object","properties":{"order":{"type":"integer"},"cents":{"type":"integer"}},"required":["order","cents"]}`)}},
	}, nil)
	fmt.Println(response.Items[0].Name, response.Items[0].Arguments, err)
	// Output: refund {"order":7,"cents":300} <nil>
}
