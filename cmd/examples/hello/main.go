// Hello starts a node and asks an agent. The node keeps its log in the folder data.
//
//	go run ./cmd/examples/hello
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

func main() {
	ctx := context.Background()
	node, err := cluster.Start(ctx, cluster.Config{
		Data:      "data",
		Providers: providers.Set{"demo": demo.New()}, // or "openai": openai.New(key)
		Agents:    []actors.Definition{{Kind: "assistant", Model: "demo/demo", Tools: []tool.Tool{toolbox.Calculator()}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	for ev, err := range node.Client().Ask(ctx, "assistant/ann", "What is 17 times 3?") {
		if err != nil {
			log.Print(err)
		}
		if ev.Terminal() {
			fmt.Println(ev.Output)
		}
	}
}
