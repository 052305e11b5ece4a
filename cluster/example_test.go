package cluster_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

// A program runs a node by itself and asks one of its agents.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	node, err := cluster.Start(ctx, cluster.Config{
		Data:      dir, // or NATS: "nats://…", or Conn: nc
		Sync:      "relaxed",
		Providers: providers.Set{"demo": demo.New()},
		Agents:    []actors.Definition{{Kind: "assistant", Model: "demo/demo", Tools: []tool.Tool{toolbox.Calculator()}}},
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	for ev, err := range node.Client().Ask(ctx, "assistant/ann", "What is 17 times 3?") {
		if err != nil {
			log.Fatal(err)
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
			fmt.Println(ev.Usage.Tokens(), "tokens")
		}
	}
	// Output:
	// 17 times 3 is 51.
	// 74 tokens
}
