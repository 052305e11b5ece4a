package messages_test

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-dev/reprise/messages"
)

// An agent is reached from any NATS client by the subjects of its address.
func ExampleParseAgentID() {
	ann, err := messages.ParseAgentID("support/ticket-42")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ann.Full(), ann.Partition())
	fmt.Println(messages.Subjects{}.In(ann))
	fmt.Println(messages.Prompt(ann))
	_, err = messages.ParseAgentID("support/ticket 42")
	fmt.Println(err)
	// Output:
	// default/support/ticket-42 10
	// reprise.in.default.support.ticket-42
	// agents.prompt.support.default.ticket-42
	// key "ticket 42" has ' ' at byte 6: only A-Z a-z 0-9 _ = - are allowed
}

// The body of an input, as it is published to the subject of an agent.
func ExampleInput() {
	body, err := json.Marshal(messages.Input{ID: "mail-1", Policy: messages.PolicySteer, Content: messages.TextContent("Order 7 came broken")})
	fmt.Println(string(body), err)
	// Output: {"id":"mail-1","policy":"steer","content":"Order 7 came broken"} <nil>
}
