// Budgets bounds what a turn may use. A turn that reaches a limit waits for a person, who resumes it with a higher one.
//
//	go run ./cmd/examples/budgets
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
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
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
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Prices: map[string]messages.Price{"demo/demo": {Input: 1.25, Output: 10}}, // for a million tokens
		Agents: []actors.Definition{{Kind: "assistant", Model: "demo/demo", Tools: []tool.Tool{toolbox.Calculator()},
			MaxSteps:     1, // model calls of a turn
			TurnLimits:   messages.Limits{MaxTokens: 50_000},
			AgentLimits:  messages.Limits{MaxCost: 25_000_000_000}, // billionths: 25 units of money in all
			PauseAtLimit: true}}})                                  // or fail the turn
	if err != nil {
		return err
	}
	defer node.Close()
	c := node.Client()
	for ev, err := range c.Ask(ctx, "assistant/ann", "What is 17 times 3?") {
		if err != nil {
			return err
		}
		switch {
		case ev.Type == "turn.paused":
			fmt.Println("a limit is reached")
			more := messages.Resume{LimitOverrides: messages.LimitOverrides{MaxSteps: 10}, Reason: "it needs a tool"}
			if _, err := c.As("ann").Do(ctx, "assistant/ann", more); err != nil {
				return err
			}
		case ev.Terminal():
			fmt.Println(ev.Output)
		}
	}
	for line, err := range c.Usage(ctx, "assistant/ann") {
		if err != nil {
			return err
		}
		if line.Type == "total" {
			fmt.Printf("%d model calls, %d tokens, cost %s\n", line.Calls, line.Usage.Tokens(), line.Cost)
		}
	}
	return nil
}
