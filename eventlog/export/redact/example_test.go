package redact_test

import (
	"fmt"
	"log"
	"regexp"
	"strings"

	"github.com/reprise-dev/reprise/eventlog/export/redact"
	"github.com/reprise-dev/reprise/messages"
)

// Mail addresses are replaced in all texts, equal ones by equal texts.
func ExampleNew() {
	r, err := redact.New([]redact.Rule{{Name: "email", Pattern: regexp.MustCompile(`[\w.+-]+@[\w.-]+\.\w+`)}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := r.Begin(messages.AgentID{Tenant: "default", Kind: "support", Key: "ann"}); err != nil {
		log.Fatal(err)
	}
	f := &messages.Frame{First: 1, Events: []messages.Event{
		messages.InputAccepted{Input: "u1", Content: messages.TextContent("I am ann@example.com")}}}
	r.Frame(f)
	text := f.Events[0].(messages.InputAccepted).Content.Text()
	fmt.Println(strings.HasPrefix(text, "I am [email:"), r.Counts())
	// Output: true map[email:1]
}
