// Debugging goes from a complaint ("order 7 was paid back twice") to its cause: find the calls, ask why the second
// one was made, and read the turn. The command line has the same views: reprise effects, why and turn.
//
//	go run ./cmd/examples/debugging
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
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
	type order struct {
		Order int `json:"order"`
		Cents int `json:"cents"`
	}
	refund := tool.New("refund", "Pay an order back", tool.Rerun, func(context.Context, order) (string, error) {
		return "paid", nil
	})
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "support", Model: "demo/demo", Tools: []tool.Tool{refund}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	c := node.Client()
	for _, id := range []string{"mail-1", "mail-2"} { // a gateway that delivers one mail under two ids
		in := messages.Input{ID: id, Content: messages.TextContent("Refund 1200 cents for order 7")}
		for _, err := range c.As("gateway").AskInput(ctx, "support/carol", in) {
			if err != nil {
				return err
			}
		}
	}

	var last projections.Effect
	paid := client.Only(messages.Query{Tool: "refund", Where: map[string]string{"order": "7"}})
	for call, err := range c.Effects(ctx, "support/carol", paid) { // "default" in place of the agent: of all agents
		if err != nil {
			return err
		}
		fmt.Printf("event %d, turn %s: %s, repeats event %d\n", call.N, call.Turn, call.Outcome, call.Repeats)
		last = call
	}
	why, err := c.Why(ctx, "support/carol", last.N)
	if err != nil {
		return err
	}
	fmt.Println(why.Findings[0].Text)
	turn, err := c.Turn(ctx, "support/carol", last.Turn)
	if err != nil {
		return err
	}
	fmt.Printf("%s: input %s, %d steps, answer %q\n", turn.ID, turn.Asked[0].ID, len(turn.Done), turn.Output)
	return nil
}
