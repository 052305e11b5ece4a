// Streaming prints an answer as it is written, with the tool calls between its words. It asks the demo model,
// or with OPENAI_API_KEY a model of OpenAI.
//
//	go run ./cmd/examples/streaming
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/openai"
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
	set, model := providers.Set{"demo": demo.New(demo.Delay(20 * time.Millisecond))}, "demo/demo"
	if key := os.Getenv("OPENAI_API_KEY"); key != "" {
		set, model = providers.Set{"openai": openai.New(key)}, "openai/gpt-5.5"
	}
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: set,
		Agents: []actors.Definition{{Kind: "assistant", Model: model, Tools: []tool.Tool{toolbox.Calculator()}}}})
	if err != nil {
		return err
	}
	defer node.Close()

	question := messages.Input{Content: messages.TextContent("What is (3+4)^2 divided by 7?")}
	for ev, err := range node.Client().AskFacts(ctx, "assistant/ann", question) { // AskInput, without the facts in between
		if err != nil {
			return err
		}
		switch {
		case ev.Type == "delta":
			fmt.Print(ev.Text)
		case ev.Type == "cut": // the model call failed half-way and is made again
			fmt.Printf("\n[%s: the answer begins again]\n", ev.Text)
		case ev.Type == "tool.requested":
			var call messages.ToolRequested
			if err := json.Unmarshal(ev.Data, &call); err != nil {
				return err
			}
			fmt.Printf("[%s %s]\n", call.Tool, call.Arguments)
		case ev.Terminal():
			fmt.Printf("\n[%s, %d tokens]\n", ev.Type, ev.Usage.Tokens())
		}
	}
	return nil
}
