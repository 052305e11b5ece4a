// Verify-in-ci records what an agent did and keeps it as a test: verify_test.go decides the recorded events again with
// the definitions of today, and fails if one comes out differently. No model is asked and no tool is called.
//
//	go run ./cmd/examples/verify-in-ci ticket.jsonl
//	go test ./cmd/examples/verify-in-ci
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: verify-in-ci FILE")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, to string) error {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()}, Agents: agents()})
	if err != nil {
		return err
	}
	defer node.Close()
	for ev, err := range node.Client().Ask(ctx, "support/ticket-42", "Refund 1250 cents for order 7") {
		if err != nil {
			return err
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
	}
	return record(ctx, node.Client(), "support/ticket-42", to)
}
