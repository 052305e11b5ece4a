package providertest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/openai"
	"github.com/reprise-dev/reprise/providers/providertest"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// A model server that plays a script, for tests of programs that reach one over HTTP.
func ExampleStart() {
	answers := providertest.Steps(scripted.Say("Good morning"))
	server, err := providertest.Start(providertest.Play(answers...), providertest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	model := openai.New("sk-test-0123456789", openai.BaseURL(server.URL))
	request := providers.Request{Model: "m", Items: []messages.Item{messages.Text(messages.RoleUser, "Hello")}}
	response, err := model.Generate(context.Background(), request, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Items[0].Content.Text(), server.Calls())
	// Output: Good morning 1
}
