package messages_test

import (
	"fmt"

	"github.com/reprise-dev/reprise/messages"
)

// header is a message without headers.
func header(string) string { return "" }

var support = messages.AgentID{Tenant: "default", Kind: "support", Key: "ann"}

// The body of an input is plain text, JSON or msgpack.
func ExampleParseInput() {
	for _, body := range []string{"Order 7 came broken", `{"id":"mail-1","policy":"steer","content":"Hurry"}`, `{"policy":"sooner"}`} {
		in, err := messages.ParseInput(support, header, []byte(body))
		fmt.Printf("%q %q %q %v\n", in.ID, in.Policy, in.Content.Text(), err)
	}
	// Output:
	// "" "" "Order 7 came broken" <nil>
	// "mail-1" "steer" "Hurry" <nil>
	// "" "" "" the input is empty: send text, or JSON with "content"
}

// A command names its type.
func ExampleParseCommand() {
	for _, body := range []string{`{"type":"interrupt","id":"stop-1","reason":"enough"}`, `{"type":"intterupt"}`} {
		command, err := messages.ParseCommand(support, header, []byte(body))
		if err != nil {
			fmt.Println(messages.AsError(err).Code)
			continue
		}
		fmt.Printf("%s %+v\n", command.CommandType(), command)
	}
	// Output:
	// interrupt {ID:stop-1 Turn: Reason:enough}
	// unknown_command
}

// What a person answers to the question whether a call may run.
func ExampleParseDecision() {
	for _, answer := range []string{"yes", "no: ask for the receipt first", "always", "perhaps"} {
		d, err := messages.ParseDecision(answer)
		text := ""
		if d.Text != nil {
			text = *d.Text
		}
		fmt.Println(d.Approve, d.Remember, text, err != nil)
	}
	// Output:
	// true false  false
	// false false ask for the receipt first false
	// true true  false
	// false false  true
}

// A query asks for a view of an agent or of a tenant.
func ExampleParseQuery() {
	for _, body := range []string{`{"view":"effects","tool":"refund","where":{"order":"7"}}`, `{"view":"effects","colour":"red"}`} {
		q, err := messages.ParseQuery([]byte(body))
		fmt.Println(q.View, q.Tool, q.Where, err != nil)
	}
	// Output:
	// effects refund map[order:7] false
	// effects  map[] true
}

// The agent of a subject of the agent protocol.
func ExampleParsePrompt() {
	a, err := messages.ParsePrompt("agents.prompt.support.default.ann")
	fmt.Println(a, err)
	// Output: support/ann <nil>
}
