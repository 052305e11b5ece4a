package toolbox_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-dev/reprise/providers/toolbox"
)

// Any program is a tool: its arguments are on standard input, its result is what it prints.
func ExampleCommand() {
	greet, err := toolbox.Command(toolbox.CommandConfig{
		Name: "greet", Description: "Greet someone", Command: []string{"cat"},
		Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(greet.Call(context.Background(), json.RawMessage(`{"name":"Ann"}`)))
	fmt.Println(greet.Call(context.Background(), json.RawMessage(`{}`)))
	// Output:
	// {"name":"Ann"} <nil>
	//  the arguments do not fit: required: missing properties: ["name"]
}
