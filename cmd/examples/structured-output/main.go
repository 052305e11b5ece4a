// Structured-output makes an agent answer with a Go struct: the answer is a call of a tool whose schema comes from
// the struct, and the result of that tool ends the turn.
//
//	go run ./cmd/examples/structured-output
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
)

// Claim is what the agent reads out of a mail.
type Claim struct {
	Order int    `json:"order" jsonschema:"the number of the order"`
	Cents int    `json:"cents" jsonschema:"the amount that the customer wants back"`
	Why   string `json:"why,omitempty" jsonschema:"the reason in a few words"`
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
	// The arguments are checked against the schema before the function is called. An error of the function goes back
	// to the model, which tries again.
	claim := tool.New("claim", "Record the customer's claim", tool.ReadOnly, func(_ context.Context, c Claim) (string, error) {
		if c.Cents <= 0 {
			return "", fmt.Errorf("%d cents are no claim", c.Cents)
		}
		text, err := json.Marshal(c)
		return string(text), err
	})
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "reader", Model: "demo/demo", Tools: []tool.Tool{claim},
			ToolChoice: "claim", StopOn: []string{"claim"}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	for ev, err := range node.Client().Ask(ctx, "reader/mail-1", `The cup of order 7 came broken, I want 300 cents back`) {
		if err != nil {
			return err
		}
		if ev.Terminal() {
			var c Claim
			if err := json.Unmarshal([]byte(ev.Output), &c); err != nil {
				return err
			}
			fmt.Printf("order %d, %d cents\n", c.Order, c.Cents)
		}
	}
	return nil
}
