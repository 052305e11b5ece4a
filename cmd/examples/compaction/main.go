// Compaction keeps what a model sees of a long conversation short: the older part is left out, or summed up by a
// model. The log keeps all of it.
//
//	go run ./cmd/examples/compaction
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/scripted"
)

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
	writer := scripted.New(scripted.Say("Ann said hello four times.")) // the model that writes the summary
	node, err := cluster.Start(ctx, cluster.Config{Data: dir,
		Providers: providers.Set{"demo": demo.New(), "writer": writer},
		Agents: []actors.Definition{{Kind: "assistant", Model: "demo/demo", Compact: actors.Compaction{
			AtTokens: 60_000, // automatically, before a request with more
			Keep:     20,     // at least so many of the newest items stay
			Model:    "writer/m"}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	c := node.Client()
	for i := range 4 {
		for _, err := range c.Ask(ctx, "assistant/ann", fmt.Sprint("Hello number ", i+1)) {
			if err != nil {
				return err
			}
		}
	}
	show := func(when string) error {
		items, text := 0, ""
		for item, err := range c.History(ctx, "assistant/ann") {
			if err != nil {
				return err
			}
			if items++; items == 1 {
				text = item.Content.Text()
			}
		}
		fmt.Printf("%s: the model sees %d items, the first is %q\n", when, items, text)
		return nil
	}
	if err := show("before"); err != nil {
		return err
	}
	if _, err := c.Do(ctx, "assistant/ann", messages.Compact{Keep: 2}); err != nil { // now, because a person asks for it
		return err
	}
	return show("after")
}
