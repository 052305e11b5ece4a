// Python-tool gives an agent a tool that is a Python script. Any other program works in the same way.
//
//	go run ./cmd/examples/python-tool
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
	"github.com/reprise-dev/reprise/providers/tool"
	"github.com/reprise-dev/reprise/providers/toolbox"
)

//go:embed weather.py
var script string

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
	weather, err := toolbox.Command(toolbox.CommandConfig{
		Name: "weather", Description: "The weather of a city",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		Command:    []string{"python3", "-c", script}, // or {"./weather.py"}, with Dir
		OnUnknown:  tool.ReadOnly,
	})
	if err != nil {
		return err
	}
	node, err := cluster.Start(ctx, cluster.Config{Data: dir, Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "assistant", Model: "demo/demo", Tools: []tool.Tool{weather}}}})
	if err != nil {
		return err
	}
	defer node.Close()
	for _, question := range []string{`weather {"city":"Lisbon"}`, `weather {"city":"???"}`} {
		for ev, err := range node.Client().Ask(ctx, "assistant/ann", question) {
			if err != nil {
				return err
			}
			if ev.Terminal() {
				fmt.Println(ev.Output)
			}
		}
	}
	return nil
}
