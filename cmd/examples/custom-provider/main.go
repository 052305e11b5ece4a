// Custom-provider makes a model of a function of yours. A provider calls a model once: it does not retry, stores
// nothing, and returns errors with a kind, so that the runtime can decide what to do.
//
//	go run ./cmd/examples/custom-provider
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// loud answers with the last message in capital letters. Its first call fails and is tried again by the runtime.
func loud() providers.Func {
	failed := make(chan struct{}, 1)
	return func(_ context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
		select {
		case failed <- struct{}{}:
			return providers.Response{}, &providers.Error{Kind: providers.Overloaded, Message: "try again", Temporary: true}
		default:
		}
		text := strings.ToUpper(r.Items[len(r.Items)-1].Content.Text())
		for word := range strings.SplitAfterSeq(text, " ") {
			emit(providers.Delta{Kind: providers.DeltaText, Text: word})
		}
		return providers.Response{
			Items:  []messages.Item{messages.Text(messages.RoleAssistant, text)},
			Finish: messages.FinishStop,
			Model:  r.Model,
			Usage:  messages.Usage{Input: len(r.Items), Output: len(strings.Fields(text))},
		}, nil
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"loud": loud()},
		Agents: []actors.Definition{{Kind: "parrot", Model: "loud/one"}}})
	if err != nil {
		return err
	}
	defer node.Close()
	for ev, err := range node.Client().Ask(ctx, "parrot/polly", "good morning") {
		if err != nil {
			return err
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
	}
	for ev, err := range node.Client().Events(ctx, "parrot/polly") {
		if err != nil {
			return err
		}
		if strings.HasPrefix(ev.Type, "model.") {
			fmt.Println(ev.N, ev.Type)
		}
	}
	return nil
}
