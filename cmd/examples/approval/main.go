// Approval has a person decide about a large refund. The turn waits for the decision, also while no node runs.
//
//	go run ./cmd/examples/approval
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
)

type refund struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
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
	if err := ask(ctx, dir, false); err != nil { // until the turn waits; then the node stops
		return err
	}
	return ask(ctx, dir, true) // a new node: the same input continues its turn
}

func ask(ctx context.Context, dir string, approve bool) error {
	pay := tool.New("refund", "Pay an order back", tool.Rerun, func(_ context.Context, r refund) (string, error) {
		return fmt.Sprintf("Paid %d cents back for order %d.", r.Cents, r.Order), nil
	}).ApproveIf(func(r refund) bool { return r.Cents > 5000 })
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "support", Model: "demo/demo", Tools: []tool.Tool{pay}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	c := node.Client()
	mail := messages.Input{ID: "mail-1", Content: messages.TextContent("Refund 9900 cents for order 7")}
	for ev, err := range c.AskInput(ctx, "support/t1", mail) {
		if err != nil {
			return err
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
		if ev.Type != "turn.paused" {
			continue
		}
		for wait, err := range c.Approvals(ctx, "support/t1") {
			if err != nil {
				return err
			}
			fmt.Println("waits for a person:", wait.Tool, wait.Arguments)
			if !approve {
				return nil // leaving the loop does not stop the turn
			}
			yes := messages.Decision{Approve: true}.Command(wait) // of this call with these arguments
			if _, err := c.As("ann").Do(ctx, "support/t1", yes); err != nil {
				return err
			}
		}
	}
	return nil
}
